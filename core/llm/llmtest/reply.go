package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gatehouse/core/llm/wiretest"
)

// created is the time stamp of everything the fake makes: 2026-01-02.
const created = 1767323045

// A Reply is one scripted answer. The parts are sent in the order of the
// fields; the zero Reply represents the server's default.
type Reply struct {
	// Status other than 0 and 200 answers with Body and Header instead of a stream.
	Status int
	Header map[string]string
	Body   string

	Reset    bool     // close the connection without any answer
	HangHead bool     // hang before the header
	Thinking []string // sent as reasoning_content, as DeepSeek, vLLM and llama.cpp do
	Text     []string // one event each
	Calls    []Call
	Hang     bool    // then hang until the client goes
	Error    *Error  // then an error event, and the end of the stream
	Raw      string  // then these bytes, as they are
	Cut      bool    // then break the connection
	NoEnd    bool    // then end the stream cleanly, without finish_reason, usage and [DONE]
	Finish   string  // finish_reason; "" = tool_calls with Calls, else stop
	Usage    *Tokens // nil: counted as text; sent only when asked for
	NoUsage  bool    // a server that ignores stream_options
	NoDone   bool    // everything but [DONE]

	Split int           // bytes per write; 0 = one event per write
	Pause time.Duration // between writes, on Options.Clock
	Burst bool          // everything in one write: for load tests
}

// A Call is a tool call whose arguments come in fragments.
type Call struct {
	ID, Name  string
	Fragments []string
}

// Tokens is a usage object.
type Tokens struct{ Prompt, Completion, Cached int }

// An Error is the API's error object.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
}

// Say answers with text, one event for each piece.
func Say(pieces ...string) Reply { return Reply{Text: pieces} }

// CallTool answers with one tool call.
func CallTool(id, name string, fragments ...string) Reply {
	return Reply{Calls: []Call{{ID: id, Name: name, Fragments: fragments}}}
}

// Limited is OpenAI's 429 with Retry-After ("" leaves it out).
func Limited(retryAfter string) Reply {
	r := Refuse(429, "Rate limit reached for fake-1 in organization org-x on requests per min (RPM): Limit 3, Used 3, "+
		"Requested 1. Please try again in 20s.", "requests", "rate_limit_exceeded")
	if retryAfter != "" {
		r.Header["Retry-After"] = retryAfter
	}
	return r
}

// Refuse answers with a status and OpenAI's error object.
func Refuse(status int, message, kind, code string) Reply {
	e := Error{Message: message, Type: kind}
	if code != "" {
		e.Code = code
	}
	body, _ := json.Marshal(map[string]any{"error": e}) // strings only: cannot fail
	return Reply{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

// HTML answers with a status and a proxy's error page.
func HTML(status int) Reply {
	return Reply{Status: status, Header: map[string]string{"Content-Type": "text/html"},
		Body: fmt.Sprintf("<html><head><title>%d %s</title></head><body><center><h1>%[1]d %[2]s</h1></center></body></html>",
			status, http.StatusText(status))}
}

func (r Reply) isZero() bool {
	return r.manner().Answers() == 200 && !r.HangHead && len(r.Thinking)+len(r.Text)+len(r.Calls) == 0 && !r.Hang &&
		r.Error == nil && r.Raw == "" && !r.Cut && !r.NoEnd && r.Finish == "" && !r.NoDone
}

func (r Reply) manner() wiretest.Manner {
	return wiretest.Manner{Status: r.Status, Header: r.Header, Body: r.Body, Reset: r.Reset, HangHead: r.HangHead,
		Hang: r.Hang, Cut: r.Cut, Split: r.Split, Pause: r.Pause, Burst: r.Burst}
}

// play sends reply.
func (s *Server) play(w http.ResponseWriter, r *http.Request, req *chatRequest, reply Reply) {
	how := reply.manner()
	if !s.Head(w, r, how) {
		return
	}
	if !req.Stream {
		s.whole(w, req, reply)
		return
	}
	before, after := events(req, reply)
	s.Stream(w, r, how, before, after)
}

// A chunk is chat.completion.chunk; the order of fields is the real one's.
type chunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Finger  string          `json:"system_fingerprint"`
	Choices []any           `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
}

// events returns the reply's events up to where it may hang or break, and the end.
func events(req *chatRequest, r Reply) (before, after [][]byte) {
	usage := req.StreamOptions.usage() && !r.NoUsage
	event := func(choices []any, tokens json.RawMessage) []byte {
		if tokens == nil && usage {
			tokens = json.RawMessage("null")
		}
		return sse(chunk{"chatcmpl-fake", "chat.completion.chunk", created, req.Model, "fp_fake", choices, tokens})
	}
	delta := func(d map[string]any, finish any) []byte {
		return event([]any{map[string]any{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	before = append(before, delta(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil))
	for _, t := range r.Thinking {
		before = append(before, delta(map[string]any{"reasoning_content": t}, nil))
	}
	for _, t := range r.Text {
		before = append(before, delta(map[string]any{"content": t}, nil))
	}
	for i, c := range r.Calls {
		before = append(before, delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.ID,
			"type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}}}, nil))
		for _, f := range c.Fragments {
			before = append(before, delta(map[string]any{"tool_calls": []any{map[string]any{"index": i,
				"function": map[string]any{"arguments": f}}}}, nil))
		}
	}
	if r.Error != nil {
		return append(before, sse(map[string]any{"error": r.Error})), nil
	}
	if r.Raw != "" {
		before = append(before, []byte(r.Raw))
	}
	if r.NoEnd {
		return before, nil
	}
	after = append(after, delta(map[string]any{}, r.finish()))
	if usage {
		after = append(after, event([]any{}, r.tokens(req)))
	}
	if !r.NoDone {
		after = append(after, []byte("data: [DONE]\n\n"))
	}
	return before, after
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// tokens returns the usage object: as scripted, else one token per word.
func (r Reply) tokens(req *chatRequest) json.RawMessage {
	t := r.Usage
	if t == nil {
		t = &Tokens{Completion: len(strings.Fields(strings.Join(r.Text, "")))}
		for _, m := range req.Messages {
			t.Prompt += len(strings.Fields(m.Content))
		}
	}
	return fmt.Appendf(nil, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
		t.Prompt, t.Completion, t.Prompt+t.Completion, t.Cached)
}

// sse returns one event with v as its data.
func sse(v any) []byte {
	data, _ := json.Marshal(v) // made here of plain values: cannot fail
	return append(append([]byte("data: "), data...), "\n\n"...)
}

// whole answers a request without "stream".
func (s *Server) whole(w http.ResponseWriter, req *chatRequest, r Reply) {
	message := map[string]any{"role": "assistant", "content": strings.Join(r.Text, ""), "refusal": nil}
	var calls []any
	for _, c := range r.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": strings.Join(c.Fragments, "")}})
	}
	if calls != nil {
		message["content"], message["tool_calls"] = nil, calls
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"id": "chatcmpl-fake", "object": "chat.completion", "created": created,
		"model": req.Model, "choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil,
			"finish_reason": r.finish()}}, "usage": r.tokens(req)})
}
