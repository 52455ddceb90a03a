package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// maxAnswer bounds an answer of the API, such as a page of messages, in bytes.
const maxAnswer = 32 << 20

// A question is a request of the API.
type question struct {
	method string
	path   []string // segments
	query  url.Values
	body   any
	header map[string]string
	event  func(data []byte) // of a stream
}

// ask makes a request of the API as the call's caller and decodes the answer into out: JSON,
// or for a *string the text as it is. What the API refuses is a core.Error with its text.
func (s *Server) ask(ctx context.Context, q question, out any) error {
	r, err := s.request(ctx, q)
	if err != nil {
		return err
	}
	p := &reply{header: http.Header{}, event: q.event, most: maxAnswer}
	s.o.API.ServeHTTP(p, r)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case p.status >= http.StatusMultipleChoices || p.status == 0:
		return refusal(p)
	case q.event != nil && p.streams():
		return nil
	}
	if text, ok := out.(*string); ok {
		*text = string(p.body)
		return nil
	}
	if err := json.Unmarshal(p.body, out); err != nil {
		return fmt.Errorf("answer of %s %v: %w", q.method, q.path, err)
	}
	return nil
}

func (s *Server) request(ctx context.Context, q question) (*http.Request, error) {
	at := ""
	for _, segment := range q.path {
		if segment == "" || segment == "." || segment == ".." {
			return nil, core.Errorf(core.NotFound, "there is nothing named %q", segment)
		}
		at += "/" + url.PathEscape(segment)
	}
	var body io.Reader = http.NoBody
	if q.body != nil {
		b, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("request %v: %w", q.path, err)
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, "http://localhost"+at+"?"+q.query.Encode(), body)
	if err != nil {
		return nil, fmt.Errorf("request %v: %w", q.path, err)
	}
	r.RequestURI = r.URL.RequestURI()
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if _, known := auth.From(ctx); !known { // the API would take the request for one of another caller
		return nil, core.Errorf(core.Denied, "send an API key")
	}
	return r, nil
}

// refusal returns the error that a problem (RFC 9457) describes.
func refusal(p *reply) error {
	var problem struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Field  string `json:"field"`
	}
	if json.Unmarshal(p.body, &problem) != nil || problem.Title == "" {
		return core.Errorf(core.Invalid, "there is no such thing")
	}
	text := problem.Detail
	if text == "" {
		text = problem.Title
	}
	return core.Errorf(web.KindOf(p.status), "%s", text)
}
