package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core"
	"gatehouse/core/llm/provider"
)

const maxWhole = 8 << 20 // bytes of an answer that comes in one piece

// A chunk is one event of the stream, of which only what is read is decoded: the
// library's type takes twice the time.
type chunk struct {
	Object  string          `json:"object"`
	Choices []choice        `json:"choices"`
	Usage   *api.Usage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// clear empties c and keeps the room for its choices, whose elements encoding/json would
// leave as they were.
func (c *chunk) clear() {
	clear(c.Choices)
	*c = chunk{Choices: c.Choices[:0]}
}

type choice struct {
	Index        int              `json:"index"`
	Delta        delta            `json:"delta"`
	FinishReason api.FinishReason `json:"finish_reason"`
}

type delta struct {
	Content   string          `json:"content"`
	Refusal   string          `json:"refusal"`
	Thinking  string          `json:"reasoning_content"`
	Reasoning json.RawMessage `json:"reasoning"` // thinking of OpenRouter and vLLM where it is a string
	ToolCalls []api.ToolCall  `json:"tool_calls"`
}

func (d *delta) thinking() string {
	if d.Thinking != "" || len(d.Reasoning) == 0 {
		return d.Thinking
	}
	var text string
	if json.Unmarshal(d.Reasoning, &text) != nil {
		return ""
	}
	return text
}

// An answer is what has been put together so far.
type answer struct {
	calls  provider.Calls
	think  thinking
	finish api.FinishReason
	usage  *core.Tokens
	event  chunk // the one that is read, in the memory of those before
	frame  frame // of an earlier one
	frames int   // that were tried; a server whose events differ is not tried for ever
}

const maxFrames = 4

// A frame is what stands around the text in an event that has nothing else. Events of one
// answer differ only in their text: one in the same frame needs no decoder.
type frame struct{ before, after []byte }

var contentKey = []byte(`"content"`)

// frameOf returns the frame of an event and what it was decoded to; false where there is
// more than text in it.
func frameOf(data []byte, c *chunk) (f frame, ok bool) {
	if len(c.Choices) != 1 || c.Usage != nil || len(c.Error) > 0 || bytes.Count(data, contentKey) != 1 {
		return f, false
	}
	d := &c.Choices[0].Delta
	if c.Choices[0].Index != 0 || c.Choices[0].FinishReason != "" || d.Refusal != "" || d.Thinking != "" || len(d.Reasoning) > 0 || d.ToolCalls != nil {
		return f, false
	}
	at := bytes.Index(data, contentKey) + len(contentKey)
	rest := bytes.TrimLeft(data[at:], " :")
	quoted := append(append([]byte{'"'}, d.Content...), '"')
	if d.Content == "" || !bytes.HasPrefix(rest, quoted) {
		return f, false
	}
	before := data[:len(data)-len(rest)+1]
	return frame{bytes.Clone(before), bytes.Clone(data[len(before)+len(d.Content):])}, true
}

// text returns the text of an event in the frame; false where it is in another one, or has
// to be decoded.
func (f *frame) text(data []byte) (text []byte, ok bool) {
	if len(f.before) == 0 || len(data) < len(f.before)+len(f.after) || !bytes.HasPrefix(data, f.before) || !bytes.HasSuffix(data, f.after) {
		return nil, false
	}
	text = data[len(f.before) : len(data)-len(f.after)]
	for _, b := range text {
		if b < ' ' || b == '"' || b == '\\' {
			return nil, false
		}
	}
	return text, utf8.Valid(text)
}

// read yields the answer in resp.
func (r *reply) read(resp *http.Response) *provider.Failure {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/json" {
		return r.readWhole(resp.Body)
	}
	events := provider.NewEvents(resp.Body)
	var a answer
	for seen := false; ; seen = true {
		data, err := events.Next()
		switch {
		case errors.Is(err, provider.ErrEventTooLong), errors.Is(err, provider.ErrStreamTooLong):
			return r.Broken(provider.Garbage("stream: " + err.Error()))
		case err != nil && a.finish != "" && (r.Answered || a.calls.Last() != nil) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			return r.end(&a) // some servers send no [DONE]
		case errors.Is(err, io.EOF) && !seen && events.Total() > 0:
			return provider.Garbage("no event in the stream")
		case errors.Is(err, io.EOF):
			return provider.CutOff(errors.New("the stream ended without [DONE]"))
		case err != nil:
			return r.Broken(r.c.link.Lost(err))
		case provider.IsDone(data):
			return r.end(&a)
		}
		if bad := r.take(&a, data); bad != nil || r.Stopped {
			return r.Broken(bad)
		}
	}
}

// take handles one event.
func (r *reply) take(a *answer, data []byte) *provider.Failure {
	if text, ok := a.frame.text(data); ok {
		return r.takeDelta(a, &delta{Content: string(text)})
	}
	c := &a.event
	c.clear()
	if err := json.Unmarshal(data, c); err != nil {
		// An error object may not fit the chunk's type either.
		if e := parseError(data); !e.isZero() && bytes.Contains(data, []byte(`"error"`)) {
			return r.c.streamFailure(e)
		}
		return provider.Garbage("an event is no JSON of the expected form")
	}
	if e := c.failed(data); !e.isZero() {
		return r.c.streamFailure(e)
	}
	if c.Usage != nil {
		a.usage = usage(c.Usage)
	}
	if a.frames < maxFrames {
		if f, ok := frameOf(data, c); ok {
			a.frame = f
			a.frames++
		}
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 {
			continue // we ask for one
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		if bad := r.takeDelta(a, &choice.Delta); bad != nil || r.Stopped {
			return bad
		}
	}
	return nil
}

// failed returns the error that an event states: {"error":…}, vLLM's
// {"object":"error",…} and llama.cpp's bare {"code":…,"message":…}.
func (c *chunk) failed(data []byte) apiError {
	named := len(c.Error) > 0 && string(c.Error) != "null"
	bare := len(c.Choices) == 0 && c.Usage == nil && bytes.Contains(data, []byte(`"message"`))
	if !named && !bare && c.Object != "error" {
		return apiError{}
	}
	e := parseError(data)
	if named && e.isZero() {
		e.Message = "an error without a message"
	}
	return e
}

func (r *reply) takeDelta(a *answer, d *delta) *provider.Failure {
	thought, text := a.think.split(d.Content + d.Refusal)
	if !r.Piece(d.thinking()+thought, text) {
		return nil
	}
	for _, fragment := range d.ToolCalls {
		if bad := a.add(fragment); bad != nil {
			return bad
		}
	}
	return nil
}

// add joins a fragment to its call. Servers that number no calls start a new one with
// each id, and some that call all of them 0 (Ollama, Gemini) with each id and name.
func (a *answer) add(f api.ToolCall) (bad *provider.Failure) {
	index := -1
	if f.Index != nil {
		index = *f.Index
	}
	call := a.calls.At(index)
	if index < 0 {
		call = a.calls.Last()
		if call != nil && f.ID != "" && call.ID != f.ID {
			call = nil
		}
	}
	if call != nil && call.ID != "" && f.ID != "" && call.ID != f.ID && f.Function.Name != "" {
		call = nil
	}
	if call == nil {
		if call, bad = a.calls.Start(index, "", ""); bad != nil {
			return bad
		}
	}
	if f.ID != "" {
		call.ID = f.ID
	}
	if call.Name == "" {
		call.Name = f.Function.Name
	}
	return a.calls.Grow(call, f.Function.Arguments)
}

// end yields what is only known at the end: calls, usage, the reason.
func (r *reply) end(a *answer) *provider.Failure {
	if a.finish == api.FinishReasonContentFilter {
		return words.Filter()
	}
	if !r.Piece(a.think.rest()) {
		return nil
	}
	return r.End(&a.calls, provider.Ending{Usage: a.usage,
		Full: a.finish == api.FinishReasonLength, Said: a.finish != ""})
}

// usage splits the prompt's tokens into fresh and cached ones.
func usage(u *api.Usage) *core.Tokens {
	out := &core.Tokens{Input: int64(max(0, u.PromptTokens)), Output: int64(max(0, u.CompletionTokens))}
	if d := u.PromptTokensDetails; d != nil {
		out.CacheRead = min(int64(max(0, d.CachedTokens)), out.Input)
		out.Input -= out.CacheRead
	}
	return out
}

// readWhole reads what servers send that ignore "stream": one JSON object, or an error
// with status 200.
func (r *reply) readWhole(body io.Reader) *provider.Failure {
	data, err := io.ReadAll(io.LimitReader(body, maxWhole+1))
	if err != nil {
		return r.c.link.Lost(err)
	}
	if len(data) > maxWhole {
		return provider.Garbage("the answer is longer than 8 MiB")
	}
	var whole api.ChatCompletionResponse
	if err := json.Unmarshal(data, &whole); err != nil || len(whole.Choices) == 0 {
		if e := parseError(data); !e.isZero() {
			return r.c.streamFailure(e)
		}
		return provider.Garbage(fmt.Sprintf("%d bytes of JSON without choices", len(data)))
	}
	choice := whole.Choices[0]
	a := answer{finish: choice.FinishReason}
	if u := usage(&whole.Usage); u.Input+u.Output+u.CacheRead > 0 { // else the server reported none
		a.usage = u
	}
	thought, text := a.think.split(choice.Message.Content)
	if !r.Piece(choice.Message.ReasoningContent+thought, text) {
		return nil
	}
	for _, c := range choice.Message.ToolCalls {
		if bad := a.add(c); bad != nil {
			return r.Broken(bad)
		}
	}
	return r.end(&a)
}
