package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

const maxSignature = 1 << 20 // bytes of one signature

// An answer is what has been received so far.
type answer struct {
	calls     provider.Calls
	signature string // of the thinking block that is open
	usage     *core.Tokens
	stop      string
	begun     bool // message_start has come
	over      bool // message_stop has come

	// Of a request with a search alone.
	whole    []*part     // everything, to go on from a pause
	found    []llm.Found // pages that searches showed
	searched bool        // a search has worked
	unfound  string      // why one has not
}

// Types of deltas and blocks that are read. One of another type may use the names of
// their fields otherwise.
var (
	deltas = []string{"text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta"}
	blocks = []string{"text", "thinking", "redacted_thinking", "web_search_tool_result", "tool_use"}
)

// take handles one event
// (https://platform.claude.com/docs/en/build-with-claude/streaming). Events
// and blocks of unknown types are passed over, as the documentation asks.
func (r *reply) take(a *answer, name string, data []byte) *provider.Failure {
	switch name {
	case "error":
		return r.c.streamFailure(parseError(data))
	case "", "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop":
	default:
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); mistyped(err) && e.Delta.Type != "" && !slices.Contains(deltas, e.Delta.Type) {
		return nil
	} else if err != nil {
		return provider.Garbage("an event is no JSON of the expected form")
	}
	if e.Type = cmp.Or(e.Type, name); e.Type == "" { // some servers write no more than the error
		if bad := parseError(data); !bad.isZero() {
			return r.c.streamFailure(bad)
		}
	}
	if r.req.Search != nil && !a.note(&e) {
		return provider.Garbage("the parts of the message do not fit together")
	}
	switch e.Type {
	case "error":
		return r.c.streamFailure(parseError(data))
	case "message_start":
		a.begun, a.usage = true, &core.Tokens{}
		a.count(&e.Message.Usage)
	case "content_block_start":
		return r.begins(a, &e)
	case "content_block_delta":
		return r.grows(a, &e)
	case "content_block_stop":
		if a.signature != "" {
			r.Begin()
			r.Send(llm.Delta{Signature: a.signature})
			a.signature = ""
		}
		r.Called(&a.calls, false)
	case "message_delta":
		a.stop = cmp.Or(e.Delta.StopReason, a.stop)
		a.count(&e.Usage)
	case "message_stop":
		a.over = true
	}
	return nil
}

// mistyped reports whether err is about a field that has another type than the documented
// one. What else was decoded is there.
func mistyped(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}

// count takes the figures of message_start and message_delta: the latter's are totals,
// and only those that are there replace the former's.
func (a *answer) count(u *figures) {
	if a.usage == nil {
		a.usage = &core.Tokens{}
	}
	set := func(to *int64, from *int64) {
		if from != nil {
			*to = max(0, *from)
		}
	}
	set(&a.usage.Input, u.Input)
	set(&a.usage.Output, u.Output)
	set(&a.usage.CacheRead, u.CacheRead)
	set(&a.usage.CacheWrite, u.CacheWrite)
	if u.Server != nil {
		set(&a.usage.Searches, u.Server.Searches)
	}
}

func (r *reply) begins(a *answer, e *event) *provider.Failure {
	var b opened
	if err := json.Unmarshal(e.Block, &b); mistyped(err) && b.Type != "" && !slices.Contains(blocks, b.Type) {
		return nil
	} else if err != nil {
		return provider.Garbage("a block is no JSON of the expected form")
	}
	if !r.Called(&a.calls, true) { // their block ended, with or without an event that reports it
		return nil
	}
	switch b.Type {
	case "redacted_thinking":
		if len(b.Data) > maxSignature {
			return provider.Garbage("redacted thinking is longer than 1 MiB")
		}
		if b.Data != "" {
			r.Begin()
			r.Send(llm.Delta{Redacted: b.Data})
		}
	case "text", "thinking":
		a.signature = b.Signature
		r.Piece(b.Thinking, b.Text)
	case "web_search_tool_result":
		a.look(b.Content)
	case "tool_use":
		_, bad := a.calls.Start(e.Index, b.ID, b.Name)
		return bad
	}
	return nil
}

func (r *reply) grows(a *answer, e *event) *provider.Failure {
	switch d := &e.Delta; d.Type {
	case "text_delta":
		r.Piece("", d.Text)
	case "thinking_delta":
		r.Piece(d.Thinking, "")
	case "signature_delta":
		if a.signature += d.Signature; len(a.signature) > maxSignature {
			return provider.Garbage("a signature is longer than 1 MiB")
		}
	case "input_json_delta":
		if call := a.calls.At(e.Index); call != nil { // else of a block that is not ours to run
			return a.calls.Grow(call, d.Input)
		}
	}
	return nil
}

// end yields what is only known at the end: usage, the reason.
func (r *reply) end(a *answer) *provider.Failure {
	if a.stop == stopRefusal {
		return words.Filter()
	}
	if bad := a.searchFault(); bad != nil {
		return bad
	}
	return r.End(&a.calls, provider.Ending{Found: a.found, Usage: a.usage, Said: a.stop != "", Full: a.stop == stopTokens || a.stop == stopWindow})
}
