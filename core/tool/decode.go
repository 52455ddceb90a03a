package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
)

// MaxInput bounds the input of one call, in bytes.
const MaxInput = 4 << 20

// Decode reads a call's input into v, a pointer to a struct whose fields carry
// `json:"name"` and, where they must be given, `tool:"required"`. Fields are
// strings, whole numbers, booleans, lists of strings, or pointers to such (nil:
// not given). null is as good as not given; numbers, booleans and lists in
// quotes are taken, because models write them. Anything else that does not fit,
// unknown names too, is core.Invalid as text that states to the model what to send.
func Decode(input json.RawMessage, v any) error {
	if len(input) > MaxInput {
		return core.Errorf(core.Invalid, "the input is %d bytes long, and at most %d are taken", len(input), MaxInput)
	}
	fields := fieldsOf(v)
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(input)) > 0 {
		if err := json.Unmarshal(input, &given); err != nil {
			return core.Errorf(core.Invalid, "the input is not a JSON object; send one with: %s", strings.Join(names, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return core.Errorf(core.Invalid, "%q is not an input of this tool; its inputs are: %s", core.CutRunes(name, 64), strings.Join(names, ", "))
		}
	}
	for _, f := range fields {
		raw, ok := given[f.name]
		if !ok || string(raw) == "null" {
			if f.required {
				return core.Errorf(core.Invalid, "%s is missing", f.name)
			}
			continue
		}
		if err := f.set(raw); err != nil {
			return err
		}
	}
	return nil
}

type field struct {
	name     string
	required bool
	value    reflect.Value
}

func fieldsOf(v any) []field {
	s := reflect.ValueOf(v).Elem()
	list := make([]field, 0, s.NumField())
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		list = append(list, field{name, tag.Get("tool") == "required", s.Field(i)})
	}
	return list
}

// set stores raw. A text is never trimmed or changed.
func (f field) set(raw json.RawMessage) error {
	kind := f.value.Kind()
	if kind == reflect.Pointer {
		kind = f.value.Type().Elem().Kind()
	}
	if kind != reflect.String {
		var quoted string
		if json.Unmarshal(raw, &quoted) == nil {
			raw = json.RawMessage(strings.TrimSpace(quoted))
		}
	}
	if kind == reflect.Int {
		if x, err := strconv.ParseFloat(string(raw), 64); err == nil && x == float64(int32(x)) {
			raw = strconv.AppendInt(nil, int64(x), 10) // 10.0 is a whole number too
		}
	}
	if err := json.Unmarshal(raw, f.value.Addr().Interface()); err != nil {
		return core.Errorf(core.Invalid, "%s must be %s", f.name, words[kind])
	}
	return nil
}

// words name the kinds of fields that Decode knows.
var words = map[reflect.Kind]string{
	reflect.String: "a text",
	reflect.Int:    "a whole number",
	reflect.Bool:   "true or false",
	reflect.Slice:  "a list of texts",
}
