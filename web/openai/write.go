package openai

import (
	"fmt"
	"net/http"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

type (
	// wireUsage are tokens as OpenAI counts them: those read from a cache and written to it are
	// among the prompt's.
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
	prompt := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	return wireUsage{Prompt: prompt, Completion: u.OutputTokens, Total: prompt + u.OutputTokens, Details: promptDetails{u.CacheReadTokens}}
}

// whole answers with one object.
type whole struct {
	c    *call
	w    http.ResponseWriter
	said strings.Builder
}

func (o *whole) Open()         {}
func (o *whole) Close()        {}
func (o *whole) Text(s string) { o.said.WriteString(s) }

func (o *whole) Fail(p *web.Problem) error {
	if err := web.Hurry(o.w); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return p
}

func (o *whole) Finish(end answer.End) error {
	if err := web.Hurry(o.w); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return web.WriteJSON(o.w, http.StatusOK, wireCompletion{
		ID: o.c.id(), Object: "chat.completion", Created: o.c.created, Model: o.c.q.Model, Usage: usageOf(end.Usage),
		Choices: []wireChoice{{Message: wireAnswer{Role: "assistant", Content: o.said.String()}, Finish: end.Reason}},
	})
}

// stream answers with chunks: the role, the text's pieces, the reason, the
// usage where it was asked for, and [DONE].
type stream struct {
	*answer.Live
	c *call
}

// first states the role.
func (o *stream) first() {
	nothing := ""
	o.piece(wirePiece{Delta: wireDelta{Role: "assistant", Content: &nothing}})
}

// chunk sends a chunk; without pieces its choices are empty.
func (o *stream) chunk(usage *wireUsage, pieces ...wirePiece) {
	chunk := wireChunk{ID: o.c.id(), Object: "chat.completion.chunk", Created: o.c.created, Model: o.c.q.Model, Choices: pieces}
	if chunk.Choices == nil {
		chunk.Choices = []wirePiece{}
	}
	if o.c.q.Usage {
		o.Send("", wireCounted{chunk, usage})
		return
	}
	o.Send("", chunk)
}

func (o *stream) piece(p wirePiece) { o.chunk(nil, p) }

func (o *stream) Open() { o.Do(func() {}) }

func (o *stream) Text(s string) {
	o.Do(func() { o.piece(wirePiece{Delta: wireDelta{Content: &s}}) })
}

// Fail answers with a status where nothing was sent, else with an error in the
// stream, as OpenAI does.
func (o *stream) Fail(p *web.Problem) error {
	return o.Live.Fail(p, func() { o.Send("", map[string]refusal.Error{"error": refusal.Of(p)}) })
}

func (o *stream) Finish(end answer.End) error {
	return o.Live.Finish(func() {
		o.piece(wirePiece{Finish: &end.Reason})
		if o.c.q.Usage {
			usage := usageOf(end.Usage)
			o.chunk(&usage)
		}
		o.SendText("[DONE]")
	})
}
