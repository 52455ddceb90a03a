package anthropictest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gatehouse/core/llm/wiretest"
)

// Signed begins every signature that the fake gives and takes back.
const Signed = "fake-signature-"

// A Reply is one scripted answer. The parts are sent in the order of the
// fields; the zero Reply represents the server's default.
type Reply struct {
	// Status other than 0 and 200 answers with Body and Header instead of a stream.
	Status int
	Header map[string]string
	Body   string

	Reset     bool     // close the connection without any answer
	HangHead  bool     // hang before the header
	Thinking  []string // one thinking block, one delta each
	Signature string   // that block's signature; given without Thinking too (display "omitted")
	Redacted  string   // then a redacted_thinking block
	Searches  []Search // then searches of the provider's own tool; the text cites what they found
	Text      []string // one text block, one delta each
	Calls     []Call
	Then      *Reply // then the thinking, text and calls of another, in the same message
	Ping      bool   // a ping event before every delta
	Hang      bool   // then hang until the client goes
	Error     *Error // then an error event, and the end of the stream
	Raw       string // then these bytes, as they are
	Cut       bool   // then break the connection
	NoEnd     bool   // then end the stream cleanly, without message_delta and message_stop
	Stop      string // stop_reason; "" = tool_use with Calls, else end_turn
	Usage     *Tokens
	NoStop    bool // everything but message_stop

	Split int           // bytes per write; 0 = one event per write
	Pause time.Duration // between writes, on Options.Clock
	Burst bool          // everything in one write: for load tests
}

// A Call is a tool call whose input comes in fragments.
type Call struct {
	ID, Name  string
	Fragments []string
}

// Tokens are the figures of a usage object.
type Tokens struct{ Input, Output, CacheRead, CacheWrite int }

// An Error is the API's error object.
type Error struct{ Type, Message string }

// Say answers with text, one delta for each piece.
func Say(pieces ...string) Reply { return Reply{Text: pieces} }

// CallTool answers with one tool call.
func CallTool(id, name string, fragments ...string) Reply {
	return Reply{Calls: []Call{{ID: id, Name: name, Fragments: fragments}}}
}

// Refuse answers with a status and the API's error object.
func Refuse(status int, kind, message string) Reply {
	return Reply{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: errorBody(kind, message, "req_fake")}
}

// Limited returns the API's 429 with Retry-After ("" leaves it out).
func Limited(retryAfter string) Reply {
	r := Refuse(429, "rate_limit_error", "This request would exceed your organization's rate limit of 50 requests per minute.")
	if retryAfter != "" {
		r.Header["Retry-After"] = retryAfter
	}
	return r
}

// Overloaded returns the API's 529.
func Overloaded() Reply { return Refuse(529, "overloaded_error", "Overloaded") }

// HTML answers with a status and a proxy's error page.
func HTML(status int) Reply {
	return Reply{Status: status, Header: map[string]string{"Content-Type": "text/html"},
		Body: fmt.Sprintf("<html><head><title>%d %s</title></head></html>", status, http.StatusText(status))}
}

func (r Reply) isZero() bool {
	return r.manner().Answers() == 200 && !r.HangHead && len(r.Thinking)+len(r.Text)+len(r.Calls)+len(r.Searches)+len(r.Signature)+len(r.Redacted) == 0 &&
		!r.Hang && r.Error == nil && r.Raw == "" && r.Then == nil && !r.Cut && !r.NoEnd && r.Stop == "" && !r.NoStop
}

func (r Reply) manner() wiretest.Manner {
	return wiretest.Manner{Status: r.Status, Header: r.Header, Body: r.Body, Reset: r.Reset, HangHead: r.HangHead,
		Hang: r.Hang, Cut: r.Cut, Split: r.Split, Pause: r.Pause, Burst: r.Burst}
}

// play sends reply.
func (s *Server) play(w http.ResponseWriter, r *http.Request, m *Message, reply Reply) {
	how := reply.manner()
	if !s.Head(w, r, how) {
		return
	}
	if !m.Stream {
		invalid("stream: the fake answers streams only").write(w, "req_fake")
		return
	}
	id := strings.Replace(w.Header().Get("Request-Id"), "req_", "msg_", 1)
	before, after := events(id, m, reply)
	s.Stream(w, r, how, before, after)
}

// A script collects the events of an answer.
type script struct {
	out   [][]byte
	index int
	ping  bool
}

// add appends one event: its name is its data's type.
func (s *script) add(kind string, fields map[string]any) {
	fields["type"] = kind
	data, _ := json.Marshal(fields) // made here of plain values: cannot fail
	s.out = append(s.out, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data))
}

// block appends a whole content block.
func (s *script) block(start map[string]any, deltas ...map[string]any) {
	s.add("content_block_start", map[string]any{"index": s.index, "content_block": start})
	for _, d := range deltas {
		if s.ping {
			s.add("ping", map[string]any{})
		}
		s.add("content_block_delta", map[string]any{"index": s.index, "delta": d})
	}
	s.add("content_block_stop", map[string]any{"index": s.index})
	s.index++
}

func delta(kind, field string, pieces []string) (out []map[string]any) {
	for _, p := range pieces {
		out = append(out, map[string]any{"type": kind, field: p})
	}
	return out
}

// events returns the events of the reply id, as no other message is called, up to where
// it may hang or break, and the end.
func events(id string, m *Message, r Reply) (before, after [][]byte) {
	u := r.tokens(m)
	s := &script{ping: r.Ping}
	s.add("message_start", map[string]any{"message": map[string]any{"id": id, "type": "message", "role": "assistant",
		"model": m.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite,
			"cache_read_input_tokens": u.CacheRead, "output_tokens": 1}}})
	s.add("ping", map[string]any{})
	for next := &r; next != nil; next = next.Then {
		s.blocks(id, next)
	}
	if r.Error != nil {
		s.add("error", map[string]any{"error": map[string]any{"type": r.Error.Type, "message": r.Error.Message}})
		return s.out, nil
	}
	if r.Raw != "" {
		s.out = append(s.out, []byte(r.Raw))
	}
	before, s.out = s.out, nil
	if r.NoEnd {
		return before, nil
	}
	s.add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": r.stop(), "stop_sequence": nil},
		"usage": r.final(u)})
	if !r.NoStop {
		s.add("message_stop", map[string]any{})
	}
	return before, s.out
}

// blocks appends the content of r.
func (s *script) blocks(id string, r *Reply) {
	if len(r.Thinking) > 0 || r.Signature != "" {
		pieces := delta("thinking_delta", "thinking", r.Thinking)
		if r.Signature != "" {
			pieces = append(pieces, map[string]any{"type": "signature_delta", "signature": r.Signature})
		}
		s.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, pieces...)
	}
	if r.Redacted != "" {
		s.block(map[string]any{"type": "redacted_thinking", "data": r.Redacted})
	}
	for i, x := range r.Searches {
		s.search(fmt.Sprintf("srvtoolu_%s_%d", id, i), x)
	}
	if len(r.Text) > 0 {
		s.block(map[string]any{"type": "text", "text": ""}, append(delta("text_delta", "text", r.Text), citations(r.Searches)...)...)
	}
	for _, c := range r.Calls {
		s.block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}},
			delta("input_json_delta", "partial_json", append([]string{""}, c.Fragments...))...)
	}
}

// final returns the usage of message_delta: totals.
func (r Reply) final(u Tokens) map[string]any {
	out := map[string]any{"output_tokens": u.Output}
	if len(r.Searches) > 0 {
		out["server_tool_use"] = map[string]any{"web_search_requests": len(r.Searches), "web_fetch_requests": 0}
	}
	return out
}

func (r Reply) stop() string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.Calls) > 0, r.Then != nil && r.Then.stop() == "tool_use":
		return "tool_use"
	}
	return "end_turn"
}

// tokens returns the figures as scripted, else one token per word.
func (r Reply) tokens(m *Message) Tokens {
	if r.Usage != nil {
		return *r.Usage
	}
	t := Tokens{Output: len(strings.Fields(strings.Join(append(r.Thinking, r.Text...), " ")))}
	for _, turn := range m.Messages {
		for _, b := range turn.Content {
			t.Input += len(strings.Fields(b.Text))
		}
	}
	return t
}
