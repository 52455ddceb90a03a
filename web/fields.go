package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
)

// FieldProblem returns the problem f with the name of the field that it is about.
func FieldProblem(f Fault, name, detail string) error {
	return &Problem{Fault: f, Detail: detail, Extra: map[string]any{"field": core.CutRunes(name, 64)}}
}

// FieldsOf returns the fields of a JSON object by their names in snake_case, without
// those that are null. The same field under two names is refused, since either
// could be meant.
func FieldsOf(raw []byte) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		if !json.Valid(raw) {
			return nil, &Problem{Fault: Invalid, Detail: "the body is not valid JSON", Err: err}
		}
		return nil, core.Errorf(core.Invalid, "the body must be a JSON object")
	}
	fields := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		if string(value) == "null" {
			continue
		}
		folded := SnakeCase(name)
		if _, twice := fields[folded]; twice {
			return nil, FieldProblem(Invalid, folded, "the field "+core.CutRunes(folded, 64)+" is there twice")
		}
		fields[folded] = value
	}
	return fields, nil
}

// SnakeCase returns a camelCase name in snake_case; other names stay as they are.
func SnakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) {
			if i > 0 {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ReadFields returns the fields of a request's JSON body of at most MaxJSON bytes.
func ReadFields(w http.ResponseWriter, r *http.Request) (map[string]json.RawMessage, error) {
	raw, err := ReadJSON(w, r, MaxJSON)
	if err != nil {
		return nil, err
	}
	return FieldsOf(raw)
}

// ReadFieldsInto decodes a body's fields into the pointers of into, by name, and warns
// of the others.
func ReadFieldsInto(w http.ResponseWriter, r *http.Request, into map[string]any) error {
	given, err := ReadFields(w, r)
	if err != nil {
		return err
	}
	for name, dest := range into {
		value, there := given[name]
		if there && json.Unmarshal(value, dest) != nil {
			return FieldProblem(Invalid, name, "the field "+name+" is not valid")
		}
		delete(given, name)
	}
	WarnUnknown(w, given)
	return nil
}

// WarnUnknown names the fields that were ignored in the Warning header.
func WarnUnknown(w http.ResponseWriter, ignored map[string]json.RawMessage) {
	names := make([]string, 0, len(ignored))
	for name := range ignored {
		names = append(names, name)
	}
	slices.Sort(names)
	WarnIgnored(w, names)
}

// QueryNumber returns a parameter of a query within its bounds; otherwise without one.
func QueryNumber(v url.Values, name string, otherwise, least, most int) (int, error) {
	if !v.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v.Get(name))
	if err != nil || n < least || n > most {
		return 0, core.Errorf(core.Invalid, "%s must be a number from %d to %d", name, least, most)
	}
	return n, nil
}

// QueryTime returns a time of a query, given as RFC 3339 or as a day in UTC; zero
// without one.
func QueryTime(v url.Values, name string) (time.Time, error) {
	if !v.Has(name) {
		return time.Time{}, nil
	}
	given := v.Get(name)
	if day, err := time.Parse(time.DateOnly, given); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return at, core.Errorf(core.Invalid, "%s must be a time such as 2026-03-01T12:00:00Z, or a day such as 2026-03-01", name)
	}
	return at, nil
}

var idempotencyKey = core.Pattern(`^[!-~]{1,128}$`)

// IdempotencyKey returns the Idempotency-Key of r and whether r has one.
func IdempotencyKey(r *http.Request) (key string, given bool, err error) {
	key, given = r.Header.Get("Idempotency-Key"), len(r.Header.Values("Idempotency-Key")) > 0
	if given && !idempotencyKey().MatchString(key) {
		err = core.Errorf(core.Invalid, "the Idempotency-Key must be 1 to 128 printable ASCII characters")
	}
	return key, given, err
}

// QueryUser returns the user_id of a query; nil without one.
func QueryUser(v url.Values) (*int64, error) {
	if !v.Has("user_id") {
		return nil, nil
	}
	id, err := strconv.ParseInt(v.Get("user_id"), 10, 64)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "user_id must be a number")
	}
	return &id, nil
}
