package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// A contract is an http.RoundTripper that holds everything that passes against
// openapi.yaml: requests that were accepted, every answer, and every event of
// a stream.
type contract struct {
	t      testing.TB
	next   http.RoundTripper
	doc    *openapi3.T
	router routers.Router

	mu      sync.Mutex
	answers map[string]bool // "POST /api/chat 200" seen
	shapes  map[string]bool // events that were held against the schema, without their digits
}

var document3 = sync.OnceValues(func() (*openapi3.T, error) {
	openapi3filter.RegisterBodyDecoder("text/event-stream", text)
	openapi3filter.RegisterBodyDecoder("text/html", text)
	openapi3filter.RegisterBodyDecoder("application/yaml", text)
	openapi3filter.RegisterBodyDecoder("text/markdown", text)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", text)
	doc, err := openapi3.NewLoader().LoadFromData(source)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

func text(r io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	b, err := io.ReadAll(r)
	return string(b), err
}

func newContract(t testing.TB, next http.RoundTripper) *contract {
	t.Helper()
	doc, err := document3()
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &contract{t: t, next: next, doc: doc, router: router, answers: map[string]bool{}, shapes: map[string]bool{}}
}

func (c *contract) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	copied := r.Clone(context.Background())
	copied.Body = io.NopCloser(bytes.NewReader(sent))
	res, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return nil, err
		}
		c.check(copied, res, body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res, nil
	}
	res.Body = &tee{ReadCloser: res.Body, done: func(body []byte) { c.check(copied, res, body) }}
	return res, nil
}

// tee calls done once with what was read. It may be closed while it is read.
type tee struct {
	io.ReadCloser
	mu   sync.Mutex
	buf  bytes.Buffer
	over bool
	done func([]byte)
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p[:n])
	if err == io.EOF {
		t.end()
	}
	return n, err
}

func (t *tee) Close() error {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	return t.ReadCloser.Close()
}

func (t *tee) end() {
	if !t.over {
		t.over = true
		t.done(t.buf.Bytes())
	}
}

func (c *contract) check(r *http.Request, res *http.Response, body []byte) {
	c.t.Helper()
	name := r.Method + " " + r.URL.Path
	probe := r.Clone(context.Background())
	probe.URL.Scheme, probe.URL.Host = "", ""
	route, params, err := c.router.FindRoute(probe)
	if r.URL.Path == "/sign-in" { // the tests' own
		return
	}
	if err != nil {
		if res.StatusCode != 404 && res.StatusCode != 405 && res.StatusCode != 401 && res.StatusCode != 403 && res.StatusCode != 421 {
			c.t.Errorf("%s is not in the document: %v", name, err)
		}
		return
	}
	c.mu.Lock()
	c.answers[route.Method+" "+route.Path+" "+res.Status[:3]] = true
	c.mu.Unlock()
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	if res.StatusCode < 400 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			c.t.Errorf("%s: a request outside the contract was accepted: %v", name, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header, Options: options}
	out.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		c.t.Errorf("%s: %s answer outside the contract: %v\n%s", name, res.Status, err, body)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") && !strings.HasPrefix(r.URL.Path, "/v1/") {
		schema := "Event"
		switch r.URL.Path {
		case "/api/permissions/stream":
			schema = "PermissionEvent"
		case "/api/chat/stream":
			schema = "FirstEvent"
		case "/mcp":
			schema = "MCPMessage"
		}
		if strings.HasPrefix(r.URL.Path, "/api/import/") {
			schema = "Import"
		}
		c.events(name, schema, body)
	}
}

// events holds each whole event of a stream against its schema: a reader may have left
// in the middle of the last one.
func (c *contract) events(name, schema string, body []byte) {
	body = body[:bytes.LastIndex(body, []byte("\n\n"))+1]
	for _, e := range parseEvents(string(body)) {
		if strings.Contains(e.id, ":") != (schema == "Event") {
			c.t.Errorf("%s: event with the id %q: %s", name, e.id, e.data)
		}
		shape := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, e.data)
		c.mu.Lock()
		known := c.shapes[shape]
		c.shapes[shape] = true
		c.mu.Unlock()
		if known { // the validator compiles the schema for every value
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(e.data), &v); err != nil {
			c.t.Errorf("%s: event %s is not JSON: %v", name, e.id, err)
			continue
		}
		if err := c.doc.Components.Schemas[schema].Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
			c.t.Errorf("%s: event outside the contract: %v\n%s", name, err, e.data)
		}
	}
}

type sent struct{ id, data string }

func parseEvents(body string) (all []sent) {
	for block := range strings.SplitSeq(body, "\n\n") {
		var e sent
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				e.id = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.data += v
			}
		}
		if e.data != "" {
			all = append(all, e)
		}
	}
	return all
}

func (e sent) kind() string {
	var v struct{ Type string }
	_ = json.Unmarshal([]byte(e.data), &v)
	return v.Type
}
