// Package fields reads the fields of JSON bodies, queries and headers, and names
// the field that is wrong.
package fields

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
	"gatehouse/web"
)

// Problem returns the problem f with the name of the field that it is about.
func Problem(f web.Fault, name, detail string) error {
	return &web.Problem{Fault: f, Detail: detail, Extra: map[string]any{"field": core.CutRunes(name, 64)}}
}

// Of returns the fields of a JSON object by their names in snake_case, without
// those that are null. The same field under two names is refused, since either
// could be meant.
func Of(raw []byte) (map[string]json.RawMessage, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		if !json.Valid(raw) {
			return nil, &web.Problem{Fault: web.Invalid, Detail: "the body is not valid JSON", Err: err}
		}
		return nil, core.Errorf(core.Invalid, "the body must be a JSON object")
	}
	fields := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		if string(value) == "null" {
			continue
		}
		folded := Snake(name)
		if _, twice := fields[folded]; twice {
			return nil, Problem(web.Invalid, folded, "the field "+core.CutRunes(folded, 64)+" is there twice")
		}
		fields[folded] = value
	}
	return fields, nil
}

// Snake returns a camelCase name in snake_case; other names stay as they are.
func Snake(name string) string {
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

// Read returns the fields of a request's JSON body of at most web.MaxJSON bytes.
func Read(w http.ResponseWriter, r *http.Request) (map[string]json.RawMessage, error) {
	raw, err := web.ReadJSON(w, r, web.MaxJSON)
	if err != nil {
		return nil, err
	}
	return Of(raw)
}

// ReadInto decodes a body's fields into the pointers of into, by name, and warns
// of the others.
func ReadInto(w http.ResponseWriter, r *http.Request, into map[string]any) error {
	given, err := Read(w, r)
	if err != nil {
		return err
	}
	for name, dest := range into {
		value, there := given[name]
		if there && json.Unmarshal(value, dest) != nil {
			return Problem(web.Invalid, name, "the field "+name+" is not valid")
		}
		delete(given, name)
	}
	Warn(w, given)
	return nil
}

// Warn names the fields that were ignored in the Warning header.
func Warn(w http.ResponseWriter, ignored map[string]json.RawMessage) {
	names := make([]string, 0, len(ignored))
	for name := range ignored {
		names = append(names, name)
	}
	slices.Sort(names)
	web.WarnIgnored(w, names)
}

// Number returns a parameter of a query within its bounds; otherwise without one.
func Number(v url.Values, name string, otherwise, least, most int) (int, error) {
	if !v.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v.Get(name))
	if err != nil || n < least || n > most {
		return 0, core.Errorf(core.Invalid, "%s must be a number from %d to %d", name, least, most)
	}
	return n, nil
}

// Time returns a time of a query, given as RFC 3339 or as a day in UTC; zero
// without one.
func Time(v url.Values, name string) (time.Time, error) {
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

// User returns the user_id of a query; nil without one.
func User(v url.Values) (*int64, error) {
	if !v.Has("user_id") {
		return nil, nil
	}
	id, err := strconv.ParseInt(v.Get("user_id"), 10, 64)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "user_id must be a number")
	}
	return &id, nil
}
