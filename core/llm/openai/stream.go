package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	api "github.com/sashabaranov/go-openai"

	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

const (
	maxCalls     = 128     // tool calls of one answer
	maxArguments = 4 << 20 // bytes of all calls' arguments together
	maxWhole     = 8 << 20 // bytes of an answer that comes in one piece
)

// A chunk is one event of the stream.
type chunk struct {
	api.ChatCompletionStreamResponse
	Error json.RawMessage `json:"error"`
}

// An answer is what has been put together so far.
type answer struct {
	calls  []*call
	size   int // bytes of arguments
	finish api.FinishReason
	usage  *llm.Usage
}

// A call is a tool call whose fragments are being collected.
type call struct {
	index    int // as the server numbers them; -1 where it does not
	id, name string
	args     strings.Builder
}

// read yields the answer in resp.
func (r *reply) read(resp *http.Response) *failure {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/json" {
		return r.readWhole(resp.Body)
	}
	events := newEventReader(resp.Body)
	var a answer
	for seen := false; ; seen = true {
		data, err := events.next()
		switch {
		case errors.Is(err, errEventTooLong), errors.Is(err, errStreamTooLong):
			return r.broken(garbage("stream", err))
		case errors.Is(err, io.EOF) && !seen && events.total > 0:
			return garbage("no event in the stream", nil)
		case errors.Is(err, io.EOF):
			return cutOff(errors.New("the stream ended without [DONE]"))
		case err != nil:
			return r.broken(r.c.transportFailure(err))
		case isDone(data):
			return r.end(&a)
		}
		if bad := r.take(&a, data); bad != nil || r.stopped {
			return r.broken(bad)
		}
	}
}

// broken makes a failure in the middle of an answer a cut-off; a filter's word stands.
func (r *reply) broken(bad *failure) *failure {
	if bad == nil || !r.answered || bad.fault.Code == llm.CodeFiltered {
		return bad
	}
	err := bad.fault.Err
	if err == nil {
		err = errors.New(bad.fault.Code)
	}
	return cutOff(err)
}

// take handles one event.
func (r *reply) take(a *answer, data []byte) *failure {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		// An error object may not fit the chunk's type either.
		if e := parseError(data); !e.isZero() && bytes.Contains(data, []byte(`"error"`)) {
			return r.c.streamFailure(e)
		}
		return garbage("an event is no JSON of the expected form", nil)
	}
	if e := c.failed(data); !e.isZero() {
		return r.c.streamFailure(e)
	}
	if c.Usage != nil {
		a.usage = usage(c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // we ask for one
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		if bad := r.takeDelta(a, choice.Delta, data); bad != nil || r.stopped {
			return bad
		}
	}
	return nil
}

// failed is the error that an event says: {"error":…}, vLLM's
// {"object":"error",…} and llama.cpp's bare {"code":…,"message":…}.
func (c *chunk) failed(data []byte) apiError {
	named := len(c.Error) > 0 && string(c.Error) != "null"
	bare := len(c.Choices) == 0 && c.Usage == nil && bytes.Contains(data, []byte(`"message"`))
	if !named && !bare && c.Object != "error" {
		return apiError{}
	}
	e := parseError(data)
	if named && e.isZero() {
		e.Message = "an error without words"
	}
	return e
}

func (r *reply) takeDelta(a *answer, d api.ChatCompletionStreamChoiceDelta, raw []byte) *failure {
	thinking := d.ReasoningContent
	if thinking == "" && bytes.Contains(raw, []byte(`"reasoning"`)) {
		thinking = reasoning(raw)
	}
	if !r.piece(thinking, d.Content+d.Refusal) {
		return nil
	}
	for _, fragment := range d.ToolCalls {
		if bad := a.add(fragment); bad != nil {
			return bad
		}
	}
	return nil
}

// reasoning reads the field that OpenRouter and vLLM use for thinking.
func reasoning(raw []byte) string {
	var c struct {
		Choices []struct {
			Delta struct {
				Reasoning string `json:"reasoning"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if json.Unmarshal(raw, &c) != nil || len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Reasoning
}

// piece yields thinking and text, and in front of the first the model's name.
func (r *reply) piece(thinking, text string) bool {
	if thinking == "" && text == "" {
		return true
	}
	return r.begin() && r.send(llm.Delta{Thinking: thinking, Text: text})
}

func (r *reply) begin() bool {
	if r.answered {
		return true
	}
	r.answered = true
	return r.send(llm.Delta{Model: r.model})
}

// add joins a fragment to its call. Servers that number no calls start a new
// one with each id.
func (a *answer) add(f api.ToolCall) *failure {
	index := -1
	if f.Index != nil {
		index = *f.Index
	}
	i := slices.IndexFunc(a.calls, func(c *call) bool { return c.index == index })
	if index < 0 {
		i = len(a.calls) - 1
		if f.ID != "" && (i < 0 || a.calls[i].id != f.ID) {
			i = -1
		}
	}
	if i < 0 {
		if len(a.calls) >= maxCalls {
			return garbage("more than 128 tool calls", nil)
		}
		a.calls = append(a.calls, &call{index: index})
		i = len(a.calls) - 1
	}
	c := a.calls[i]
	if f.ID != "" {
		c.id = f.ID
	}
	if c.name == "" {
		c.name = f.Function.Name
	}
	if a.size += len(f.Function.Arguments); a.size > maxArguments {
		return garbage("the arguments of tool calls are longer than 4 MiB", nil)
	}
	c.args.WriteString(f.Function.Arguments)
	return nil
}

// end yields what is only known at the end: calls, usage, the reason.
func (r *reply) end(a *answer) *failure {
	stop := "end_turn"
	switch {
	case a.finish == api.FinishReasonContentFilter:
		return r.broken(final(llm.CodeFiltered, texts.Text("provider_filtered")))
	case a.finish == api.FinishReasonLength:
		stop = "max_tokens"
	case len(a.calls) > 0:
		stop = "tool_use"
	case !r.answered && a.finish == "":
		return garbage("an answer without content and reason", nil)
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
		id = "call_" + uuid.NewString()
	}
	return &llm.Block{Type: "tool_use", ID: id, Name: c.name, Input: input}, c.name != ""
}

// usage splits the prompt's tokens into fresh and cached ones.
func usage(u *api.Usage) *llm.Usage {
	out := &llm.Usage{Input: int64(max(0, u.PromptTokens)), Output: int64(max(0, u.CompletionTokens))}
	if d := u.PromptTokensDetails; d != nil {
		out.CacheRead = min(int64(max(0, d.CachedTokens)), out.Input)
		out.Input -= out.CacheRead
	}
	return out
}

// readWhole reads what servers send that ignore "stream": one JSON object, or an error with status 200.
func (r *reply) readWhole(body io.Reader) *failure {
	data, err := io.ReadAll(io.LimitReader(body, maxWhole+1))
	if err != nil {
		return r.c.transportFailure(err)
	}
	if len(data) > maxWhole {
		return garbage("the answer is longer than 8 MiB", nil)
	}
	var whole api.ChatCompletionResponse
	if err := json.Unmarshal(data, &whole); err != nil || len(whole.Choices) == 0 {
		if e := parseError(data); !e.isZero() {
			return r.c.streamFailure(e)
		}
		return garbage(fmt.Sprintf("%d bytes of JSON without choices", len(data)), nil)
	}
	choice := whole.Choices[0]
	a := answer{finish: choice.FinishReason, usage: usage(&whole.Usage)}
	if !r.piece(choice.Message.ReasoningContent, choice.Message.Content) {
		return nil
	}
	for _, c := range choice.Message.ToolCalls {
		if bad := a.add(c); bad != nil {
			return r.broken(bad)
		}
	}
	return r.end(&a)
}
