package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
)

// read decodes an event of our own; what cannot be read ends the answer.
func (res *result) read(e bus.Entry, into any) bool {
	if err := json.Unmarshal(e.Data, into); err != nil {
		res.bad = lost(fmt.Errorf("event %s: %w", e.ID(), err))
		return false
	}
	return true
}

type (
	// wireUsage are tokens as OpenAI counts them: cached ones are among the prompt's.
	wireUsage struct {
		Prompt     int64         `json:"prompt_tokens"`
		Completion int64         `json:"completion_tokens"`
		Total      int64         `json:"total_tokens"`
		Details    promptDetails `json:"prompt_tokens_details"`
	}
	promptDetails struct {
		Cached int64 `json:"cached_tokens"`
	}
	wireAnswer struct {
		Role    string  `json:"role"`
		Content string  `json:"content"`
		Refusal *string `json:"refusal"`
	}
	wireChoice struct {
		Index    int        `json:"index"`
		Message  wireAnswer `json:"message"`
		Logprobs *struct{}  `json:"logprobs"`
		Finish   string     `json:"finish_reason"`
	}
	wireCompletion struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []wireChoice `json:"choices"`
		Usage   wireUsage    `json:"usage"`
	}
	wireDelta struct {
		Role    string  `json:"role,omitempty"`
		Content *string `json:"content,omitempty"`
	}
	wirePiece struct {
		Index    int       `json:"index"`
		Delta    wireDelta `json:"delta"`
		Logprobs *struct{} `json:"logprobs"`
		Finish   *string   `json:"finish_reason"`
	}
	wireChunk struct {
		ID      string      `json:"id"`
		Object  string      `json:"object"`
		Created int64       `json:"created"`
		Model   string      `json:"model"`
		Choices []wirePiece `json:"choices"`
	}
	// wireCounted is a chunk where include_usage is set: null but in the last.
	wireCounted struct {
		wireChunk
		Usage *wireUsage `json:"usage"`
	}
)

func usageOf(u core.Usage) wireUsage {
	prompt := u.InputTokens + u.CacheReadTokens
	return wireUsage{Prompt: prompt, Completion: u.OutputTokens, Total: prompt + u.OutputTokens, Details: promptDetails{u.CacheReadTokens}}
}

// A writer gives an answer to the client. Exactly one of fail and finish comes,
// after everything else.
type writer interface {
	open() // something happens: the answer begins, though no word of it has come
	text(s string)
	fail(p *web.Problem) error
	finish(reason string, u core.Usage) error
	close()
}

// whole answers with one object.
type whole struct {
	c    *call
	w    http.ResponseWriter
	said strings.Builder
}

func (o *whole) open()         {}
func (o *whole) close()        {}
func (o *whole) text(s string) { o.said.WriteString(s) }

func (o *whole) fail(p *web.Problem) error {
	if err := web.Hurry(o.w); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return p
}

func (o *whole) finish(reason string, u core.Usage) error {
	if err := web.Hurry(o.w); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return web.WriteJSON(o.w, http.StatusOK, wireCompletion{
		ID: o.c.id(), Object: "chat.completion", Created: o.c.created, Model: o.c.q.Model, Usage: usageOf(u),
		Choices: []wireChoice{{Message: wireAnswer{Role: "assistant", Content: o.said.String()}, Finish: reason}},
	})
}

// openAfter is when a stream begins that nothing has come for, so that proxies
// and clients see it live. Until something comes or this has passed, a failure
// still has an HTTP status.
const openAfter = 5 * time.Second

// stream answers with chunks: the role, the text's pieces, the reason, the
// usage where it was asked for, and [DONE].
type stream struct {
	c    *call
	w    http.ResponseWriter
	done chan struct{} // the wait to open has ended
	stop func()        // ends that wait

	mu   sync.Mutex // of what follows: the wait opens too
	s    *web.Stream
	err  error
	over bool
	free func() bool
}

func (c *call) stream(ctx context.Context, w http.ResponseWriter) *stream {
	ctx, cancel := context.WithCancel(ctx)
	o := &stream{c: c, w: w, done: make(chan struct{}), stop: cancel}
	wait := c.a.Clock.After(openAfter)
	go func() {
		defer close(o.done)
		select {
		case <-wait:
			o.open()
		case <-ctx.Done():
		}
	}()
	return o
}

func (o *stream) open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin()
}

// begin opens the stream and says the role, once; mu is held.
func (o *stream) begin() {
	if o.s != nil || o.err != nil || o.over {
		return
	}
	if o.s, o.err = web.OpenStream(o.w, o.c.r, web.StreamOptions{Pulse: o.c.a.pulse, Metrics: o.c.a.Metrics, Plain: true}); o.err != nil {
		o.c.gone.Store(true)
		return
	}
	o.free = context.AfterFunc(o.s.Context(), func() { // a reader that takes nothing is as good as gone
		o.c.gone.Store(true)
		o.c.a.Runs.Abort(o.c.session)
	})
	nothing := ""
	o.piece(wirePiece{Delta: wireDelta{Role: "assistant", Content: &nothing}})
}

// send sends a chunk; without pieces its choices are empty. mu is held.
func (o *stream) send(usage *wireUsage, pieces ...wirePiece) {
	if o.s == nil {
		return
	}
	chunk := wireChunk{ID: o.c.id(), Object: "chat.completion.chunk", Created: o.c.created, Model: o.c.q.Model, Choices: pieces}
	if chunk.Choices == nil {
		chunk.Choices = []wirePiece{}
	}
	var v any = chunk
	if o.c.q.Usage {
		v = wireCounted{chunk, usage}
	}
	o.data(v)
}

func (o *stream) piece(p wirePiece) { o.send(nil, p) }

func (o *stream) data(v any) {
	body, err := json.Marshal(v)
	if err == nil {
		err = o.s.Send("", body)
	}
	if err != nil && o.err == nil {
		o.err = err
	}
}

func (o *stream) text(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin()
	o.piece(wirePiece{Delta: wireDelta{Content: &s}})
}

// fail answers with a status where nothing was sent, else with an error in the
// stream, as OpenAI does.
func (o *stream) fail(p *web.Problem) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.s == nil && o.err == nil {
		o.over = true
		if err := web.Hurry(o.w); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		return p
	}
	if o.s != nil {
		o.data(map[string]wireError{"error": errorOf(p)})
	}
	return p
}

func (o *stream) finish(reason string, u core.Usage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begin()
	o.piece(wirePiece{Finish: &reason})
	if o.c.q.Usage {
		usage := usageOf(u)
		o.send(&usage)
	}
	if o.s == nil {
		return fmt.Errorf("open stream: %w", o.err)
	}
	_ = o.s.Send("", []byte("[DONE]")) // the client may be gone
	return nil
}

func (o *stream) close() {
	o.stop()
	<-o.done
	if o.s != nil {
		o.free()
		o.s.Close()
	}
}
