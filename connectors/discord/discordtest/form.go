package discordtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A form is the body of a request, with what is wrong in it.
type form struct {
	fields map[string]json.RawMessage
	raw    json.RawMessage // a body that is no object
	files  []upload
	errs   map[string]any
}

// An upload is one files[n] part ([reference] "Uploading Files").
type upload struct {
	n    string
	name string
	kind string
	data []byte
}

const (
	maxBody = 25 << 20 // [message] "Create Message": "maximum request size … 25 MiB"
	maxFile = 10 << 20 // [reference] "Uploading Files": 10 MiB by default
)

// invalid returns error 50035 with one wrong field ([reference] "Error Messages").
func invalid(path, code, text string) *apiError {
	f := &form{}
	f.wrong(path, code, text)
	return f.check()
}

// wrong notes an error at a path such as "components.0.custom_id"; "" is the whole body.
func (f *form) wrong(path, code, text string) {
	if f.errs == nil {
		f.errs = map[string]any{}
	}
	node := f.errs
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		next, ok := node[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			node[key] = next
		}
		node = next
	}
	list, _ := node["_errors"].([]any)
	node["_errors"] = append(list, map[string]string{"code": code, "message": text})
}

func (f *form) check() *apiError {
	if f.errs == nil {
		return nil
	}
	return &apiError{status: 400, code: 50035, text: "Invalid Form Body", form: f.errs}
}

func (f *form) has(key string) bool {
	v, ok := f.fields[key]
	return ok && !bytes.Equal(v, []byte("null"))
}

// required, tooLong and so on speak the platform's text ([reference] "Error Messages";
// [practice]).
func (f *form) required(path string) { f.wrong(path, "BASE_TYPE_REQUIRED", "This field is required") }

func (f *form) tooLong(path string, most int) {
	f.wrong(path, "BASE_TYPE_MAX_LENGTH", "Must be "+strconv.Itoa(most)+" or fewer in length.")
}

func (f *form) badLength(path string, least, most int) {
	f.wrong(path, "BASE_TYPE_BAD_LENGTH", "Must be between "+strconv.Itoa(least)+" and "+strconv.Itoa(most)+" in length.")
}

func (f *form) choices(path, list string) {
	f.wrong(path, "BASE_TYPE_CHOICES", "Value must be one of {"+list+"}.")
}

// text reads a string field; lengths are in code points.
func (f *form) text(key string) string {
	if !f.has(key) {
		return ""
	}
	var s string
	if json.Unmarshal(f.fields[key], &s) != nil {
		f.wrong(key, "STRING_TYPE_CONVERT", "Could not interpret "+strconv.Quote(string(f.fields[key]))+" as string.")
	}
	return s
}

func (f *form) limit(path, s string, most int) {
	if utf8.RuneCountInString(s) > most {
		f.tooLong(path, most)
	}
}

func (f *form) integer(key string) int {
	if !f.has(key) {
		return 0
	}
	n, err := strconv.ParseInt(strings.Trim(string(f.fields[key]), `"`), 10, 53)
	if err != nil {
		f.wrong(key, "NUMBER_TYPE_COERCE", "Value "+string(f.fields[key])+" is not int.")
	}
	return int(n)
}

func (f *form) boolean(key string, otherwise bool) bool {
	if !f.has(key) {
		return otherwise
	}
	v, err := strconv.ParseBool(string(f.fields[key]))
	if err != nil {
		f.wrong(key, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.")
	}
	return v
}

// id reads a snowflake, a string or a number.
func (f *form) id(key string) ID {
	if !f.has(key) {
		return 0
	}
	return f.snowflake(key, strings.Trim(string(f.fields[key]), `"`))
}

func (f *form) snowflake(path, text string) ID {
	id, err := ParseID(text)
	if err != nil || id > 1<<63-1 {
		f.wrong(path, "NUMBER_TYPE_COERCE", "Value "+strconv.Quote(text)+" is not snowflake.")
	}
	return id
}

// object reads a field that is an object; nil when it is not there.
func (f *form) object(key string) *form {
	if !f.has(key) {
		return nil
	}
	sub := &form{}
	if json.Unmarshal(f.fields[key], &sub.fields) != nil {
		f.wrong(key, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
		return nil
	}
	return sub
}

// adopt takes over the errors of a part.
func (f *form) adopt(path string, sub *form) {
	if sub == nil || sub.errs == nil {
		return
	}
	if f.errs == nil {
		f.errs = map[string]any{}
	}
	if node, ok := f.errs[path].(map[string]any); ok {
		maps.Copy(node, sub.errs)
		return
	}
	f.errs[path] = sub.errs
}

// array reads a list field.
func (f *form) array(key string) []json.RawMessage {
	if !f.has(key) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(f.fields[key], &list) != nil {
		f.wrong(key, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
	}
	return list
}

var contentTypes = []string{"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}

// readForm reads a body by its Content-Type. A missing or other type is
// refused, an empty body too where a type is given ([reference] "Content
// Type"; [practice]).
func readForm(w http.ResponseWriter, r *http.Request) (*form, *apiError) {
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := http.MaxBytesReader(w, r.Body, maxBody)
	if kind == "multipart/form-data" {
		return readParts(multipart.NewReader(body, params["boundary"]))
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, unreadable(err)
	}
	if r.Method == http.MethodGet || len(b) == 0 && kind == "" {
		return &form{}, nil
	}
	if !slices.Contains(contentTypes, kind) {
		return nil, invalid("", "CONTENT_TYPE_INVALID", `Expected "Content-Type" header to be one of {'application/x-www-form-urlencoded', 'application/json', 'multipart/form-data'}.`)
	}
	if kind != "application/json" {
		return nil, invalid("", "CONTENT_TYPE_INVALID", "form bodies are not simulated")
	}
	return parseForm(b)
}

func unreadable(err error) *apiError {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return errTooLarge
	}
	return errBadJSON
}

func parseForm(b []byte) (*form, *apiError) {
	f := &form{}
	if !json.Valid(b) {
		return nil, errBadJSON
	}
	if json.Unmarshal(b, &f.fields) != nil {
		f.fields, f.raw = nil, b
	}
	return f, nil
}

// readParts reads payload_json and files[n].
func readParts(r *multipart.Reader) (*form, *apiError) {
	f := &form{}
	var files []upload
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			f.files = files
			return f, nil
		}
		if err != nil {
			return nil, unreadable(err)
		}
		b, err := io.ReadAll(io.LimitReader(p, maxBody+1))
		if err != nil {
			return nil, unreadable(err)
		}
		name := p.FormName()
		switch n, ok := strings.CutPrefix(name, "files["); {
		case name == "payload_json":
			var fault *apiError
			if f, fault = parseForm(b); fault != nil {
				return nil, fault
			}
		case len(b) > maxFile:
			return nil, errTooLarge
		case ok && p.FileName() != "", name == "file":
			files = append(files, upload{strings.TrimSuffix(n, "]"), p.FileName(), p.Header.Get("Content-Type"), b})
		}
	}
}
