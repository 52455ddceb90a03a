package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	api "github.com/anthropics/anthropic-sdk-go"

	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

const (
	maxCalls     = 128     // tool calls of one answer
	maxArguments = 4 << 20 // bytes of all calls' arguments together
	maxSignature = 1 << 20 // bytes of one signature
)

// An answer is what has been put together so far.
type answer struct {
	calls     []*call
	size      int    // bytes of arguments
	signature string // of the thinking block that is open
	usage     *llm.Usage
	stop      api.StopReason
	begun     bool // message_start has come
	over      bool // message_stop has come

	// Of a request with a search alone.
	whole    api.Message // everything, to go on from a pause
	found    []llm.Found // pages that searches showed
	searched bool        // a search has worked
	unfound  string      // why one has not
}

// A call is a tool call whose fragments are being collected.
type call struct {
	index    int64 // of its content block
	id, name string
	args     strings.Builder
}

// take handles one event
// (https://platform.claude.com/docs/en/build-with-claude/streaming). Events
// and blocks of unknown types are passed over, as the documentation asks.
func (r *reply) take(a *answer, e *api.MessageStreamEventUnion) *failure {
	if r.req.Search != nil {
		if err := a.whole.Accumulate(*e); err != nil {
			return garbage("the parts of the message do not fit together")
		}
	}
	switch e.Type {
	case "message_start":
		a.begun = true
		u := &e.Message.Usage
		a.usage = &llm.Usage{Input: max(0, u.InputTokens), Output: max(0, u.OutputTokens),
			CacheRead: max(0, u.CacheReadInputTokens), CacheWrite: max(0, u.CacheCreationInputTokens)}
	case "content_block_start":
		return r.begins(a, e)
	case "content_block_delta":
		return r.grows(a, e)
	case "content_block_stop":
		if a.signature != "" {
			r.begin()
			r.send(llm.Delta{Signature: a.signature})
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
		a.usage = &llm.Usage{}
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

func (r *reply) begins(a *answer, e *api.MessageStreamEventUnion) *failure {
	b := &e.ContentBlock
	switch b.Type {
	case "text", "thinking":
		a.signature = b.Signature
		r.piece(b.Thinking, b.Text)
	case "web_search_tool_result":
		a.look(e)
	case "tool_use":
		if len(a.calls) >= maxCalls {
			return garbage("more than 128 tool calls")
		}
		a.calls = append(a.calls, &call{index: e.Index, id: b.ID, name: b.Name})
	}
	return nil
}

func (r *reply) grows(a *answer, e *api.MessageStreamEventUnion) *failure {
	switch d := &e.Delta; d.Type {
	case "text_delta":
		r.piece("", d.Text)
	case "thinking_delta":
		r.piece(d.Thinking, "")
	case "signature_delta":
		if a.signature += d.Signature; len(a.signature) > maxSignature {
			return garbage("a signature is longer than 1 MiB")
		}
	case "input_json_delta":
		i := slices.IndexFunc(a.calls, func(c *call) bool { return c.index == e.Index })
		if i < 0 {
			return nil // of a block that is not ours to run
		}
		if a.size += len(d.PartialJSON); a.size > maxArguments {
			return garbage("the arguments of tool calls are longer than 4 MiB")
		}
		a.calls[i].args.WriteString(d.PartialJSON)
	}
	return nil
}

// piece yields thinking and text, and in front of the first the model's name.
func (r *reply) piece(thinking, text string) {
	if (thinking != "" || text != "") && r.begin() {
		r.send(llm.Delta{Thinking: thinking, Text: text})
	}
}

func (r *reply) begin() bool {
	if r.answered {
		return !r.stopped
	}
	r.answered = true
	return r.send(llm.Delta{Model: r.model})
}

// end yields what is only known at the end: calls, usage, the reason.
func (r *reply) end(a *answer) *failure {
	stop := "end_turn"
	switch {
	case a.stop == api.StopReasonRefusal:
		return final(llm.CodeFiltered, texts.Text("model_declined"))
	case a.searchFault() != nil:
		return a.searchFault()
	case a.stop == api.StopReasonMaxTokens, a.stop == api.StopReasonModelContextWindowExceeded:
		stop = "max_tokens"
	case len(a.calls) > 0:
		stop = "tool_use"
	case !r.answered && a.stop == "":
		return garbage("an answer without content and reason")
	}
	if !r.begin() {
		return nil
	}
	for _, c := range a.calls {
		block, ok := c.block(stop == "max_tokens")
		if ok && !r.send(llm.Delta{Call: block}) {
			return nil
		}
	}
	for i := range a.found {
		if !r.send(llm.Delta{Found: &a.found[i]}) {
			return nil
		}
	}
	r.send(llm.Delta{Usage: a.usage, Stop: stop})
	return nil
}

// block is the whole call. Arguments that are no JSON object are handed on as
// a JSON string, so that the tool can refuse them; those of a call that the
// token limit cut are not handed on at all.
func (c *call) block(cut bool) (*llm.Block, bool) {
	args := strings.TrimSpace(c.args.String())
	if args == "" {
		args = "{}"
	}
	input := json.RawMessage(args)
	if !json.Valid(input) || input[0] != '{' {
		if cut {
			return nil, false
		}
		input, _ = json.Marshal(args) // a string: cannot fail
	}
	id := c.id
	if id == "" {
		id = "toolu_" + uuid.NewString()
	}
	return &llm.Block{Type: "tool_use", ID: id, Name: c.name, Input: input}, c.name != ""
}
