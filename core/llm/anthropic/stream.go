package anthropic

import (
	api "github.com/anthropics/anthropic-sdk-go"

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
	stop      api.StopReason
	begun     bool // message_start has come
	over      bool // message_stop has come

	// Of a request with a search alone.
	whole    api.Message // everything, to go on from a pause
	found    []llm.Found // pages that searches showed
	searched bool        // a search has worked
	unfound  string      // why one has not
}

// take handles one event
// (https://platform.claude.com/docs/en/build-with-claude/streaming). Events
// and blocks of unknown types are passed over, as the documentation asks.
func (r *reply) take(a *answer, e *api.MessageStreamEventUnion) *provider.Failure {
	if r.req.Search != nil {
		if err := a.whole.Accumulate(*e); err != nil {
			return provider.Garbage("the parts of the message do not fit together")
		}
	}
	switch e.Type {
	case "message_start":
		a.begun = true
		u := &e.Message.Usage
		a.usage = &core.Tokens{Input: max(0, u.InputTokens), Output: max(0, u.OutputTokens),
			CacheRead: max(0, u.CacheReadInputTokens), CacheWrite: max(0, u.CacheCreationInputTokens)}
	case "content_block_start":
		return r.begins(a, e)
	case "content_block_delta":
		return r.grows(a, e)
	case "content_block_stop":
		if a.signature != "" {
			r.Begin()
			r.Send(llm.Delta{Signature: a.signature})
			a.signature = ""
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
		a.count(&e.Usage)
	case "message_stop":
		a.over = true
	}
	return nil
}

// count takes the figures of message_delta: they are totals, and only those
// that are there replace the ones of message_start.
func (a *answer) count(u *api.MessageDeltaUsage) {
	if a.usage == nil {
		a.usage = &core.Tokens{}
	}
	for _, x := range []struct {
		there bool
		from  int64
		to    *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &a.usage.Input},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &a.usage.Output},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &a.usage.CacheRead},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &a.usage.CacheWrite},
		{u.JSON.ServerToolUse.Valid(), u.ServerToolUse.WebSearchRequests, &a.usage.Searches},
	} {
		if x.there {
			*x.to = max(0, x.from)
		}
	}
}

func (r *reply) begins(a *answer, e *api.MessageStreamEventUnion) *provider.Failure {
	b := &e.ContentBlock
	switch b.Type {
	case "text", "thinking":
		a.signature = b.Signature
		r.Piece(b.Thinking, b.Text)
	case "web_search_tool_result":
		a.look(e)
	case "tool_use":
		_, bad := a.calls.Start(int(e.Index), b.ID, b.Name)
		return bad
	}
	return nil
}

func (r *reply) grows(a *answer, e *api.MessageStreamEventUnion) *provider.Failure {
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
		if call := a.calls.At(int(e.Index)); call != nil { // else of a block that is not ours to run
			return a.calls.Grow(call, d.PartialJSON)
		}
	}
	return nil
}

// end yields what is only known at the end: calls, usage, the reason.
func (r *reply) end(a *answer) *provider.Failure {
	if a.stop == api.StopReasonRefusal {
		return words.Filter()
	}
	if bad := a.searchFault(); bad != nil {
		return bad
	}
	return r.End(&a.calls, provider.Ending{Found: a.found, Usage: a.usage, Said: a.stop != "",
		Full: a.stop == api.StopReasonMaxTokens || a.stop == api.StopReasonModelContextWindowExceeded})
}
