package telegramtest

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Bounds of a request: an upload may have 50 MB ([api] "Sending files"), a
// parameter 1 MB of text (ours; the platform's own limits come far below).
const (
	maxBody  = 51 << 20
	maxField = 1 << 20
)

// params are a request's parameters, from whichever of the four ways they came.
type params map[string]string

// readParams reads query, urlencoded, multipart and JSON parameters
// ([api] "Making requests": GET and POST; URL query string,
// application/x-www-form-urlencoded, application/json (except for uploading
// files), multipart/form-data). The body wins over the query.
func readParams(w http.ResponseWriter, r *http.Request) (params, map[string]File, error) {
	p := params{}
	if r.URL.RawQuery != "" {
		for k, v := range r.URL.Query() {
			p[k] = v[0]
		}
	}
	if r.Method != http.MethodPost || r.Body == nil {
		return p, nil, nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch kind {
	case "application/json":
		return p, nil, p.readJSON(r.Body)
	case "multipart/form-data":
		files, err := p.readMultipart(r)
		return p, files, err
	case "application/x-www-form-urlencoded":
		r.ParseForm()
		for k, v := range r.PostForm {
			p[k] = v[0]
		}
		return p, nil, nil
	}
	_, err = io.Copy(io.Discard, r.Body)
	return p, nil, err
}

// readJSON takes an object's strings as they are and everything else as its
// JSON text, so that a number, a bool and a nested object mean what their
// serialised form would.
func (p params) readJSON(body io.Reader) error {
	var object map[string]json.RawMessage
	if err := json.NewDecoder(body).Decode(&object); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	for k, v := range object {
		var s string
		if string(v) == "null" {
			continue
		}
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		p[k] = s
	}
	return nil
}

// maxUploads bounds the files of one request.
const maxUploads = 10

// readMultipart keeps values and gives files by the names of their fields.
func (p params) readMultipart(r *http.Request) (map[string]File, error) {
	mr, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	files := map[string]File{}
	for {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		limit := int64(maxField)
		if part.FileName() != "" {
			limit = maxBody
		}
		b, err := io.ReadAll(io.LimitReader(part, limit))
		switch {
		case err != nil:
			return nil, err
		case part.FileName() == "":
			p[part.FormName()] = string(b)
		case len(files) < maxUploads:
			files[part.FormName()] = File{Name: part.FileName(), Data: b}
		}
	}
}

// integer reads a number the way [server] get_integer_arg does: absent or
// unreadable text counts as the default or 0, and the value is clamped.
func (p params) integer(name string, def, low, high int64) int64 {
	s := strings.TrimSpace(p[name])
	if s == "" {
		return def
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	return min(max(n, low), high)
}

func (p params) id(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(p[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// boolean implements [server] to_bool: "true", "yes" and "1" in any case.
func (p params) boolean(name string) bool {
	switch strings.ToLower(strings.TrimSpace(p[name])) {
	case "true", "yes", "1":
		return true
	}
	return false
}
