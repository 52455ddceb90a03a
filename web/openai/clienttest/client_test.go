// Package clienttest holds the official clients of OpenAI's API, unchanged,
// against the gateway's /v1. It is a module of its own, so that the gateway's
// is not burdened with them. `make test-clients` runs it.
package clienttest

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// A visit is what the gateway's test tells of itself.
type visit struct {
	*testing.T
	client openai.Client
	url    string
	model  string
	says   string // the model's answer
}

// TestOfficialGoClient goes through its steps in order: the gateway's model
// has its answers ready in that order.
func TestOfficialGoClient(t *testing.T) {
	v := visit{T: t, url: os.Getenv("OPENAI_TEST_URL"), model: os.Getenv("OPENAI_TEST_MODEL"), says: os.Getenv("OPENAI_TEST_SAYS")}
	if v.url == "" {
		t.Skip("no gateway: run make test-clients")
	}
	v.client = openai.NewClient(option.WithBaseURL(v.url+"/v1/"), option.WithAPIKey(os.Getenv("OPENAI_TEST_KEY")))
	for _, step := range []struct {
		name string
		run  func(visit)
	}{
		{"models", visit.models}, {"whole", visit.whole}, {"stream", visit.stream}, {"conversation", visit.conversation},
		{"refusals", visit.refusals}, {"limited", visit.limited}, {"final", visit.final}, {"broken", visit.broken},
		{"responses", visit.responses}, {"background", visit.background}, {"repeated", visit.repeated}, {"transcribed", visit.transcribed},
		{"brokenResponse", visit.brokenResponse}, {"left", visit.left},
	} {
		if !t.Run(step.name, func(t *testing.T) { w := v; w.T = t; step.run(w) }) {
			t.FailNow()
		}
	}
}

func (v visit) params(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: v.model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func (v visit) models() {
	found := 0
	pages := v.client.Models.ListAutoPaging(v.Context())
	for pages.Next() {
		if id := pages.Current().ID; id == v.model || id == "vault-agent" {
			found++
		}
	}
	if err := pages.Err(); err != nil || found != 2 {
		v.Fatalf("%d of the two models: %v", found, err)
	}
	m, err := v.client.Models.Get(v.Context(), v.model)
	if err != nil || m.ID != v.model {
		v.Errorf("%+v: %v", m, err)
	}
}

func (v visit) whole() {
	c, err := v.client.Chat.Completions.New(v.Context(), v.params("Hello"))
	if err != nil {
		v.Fatal(err)
	}
	if len(c.Choices) != 1 || c.Choices[0].Message.Content != v.says || c.Choices[0].FinishReason != "stop" || c.Model != v.model {
		v.Errorf("%s", c.RawJSON())
	}
	if c.Usage.TotalTokens == 0 || c.Usage.TotalTokens != c.Usage.PromptTokens+c.Usage.CompletionTokens {
		v.Errorf("usage %+v", c.Usage)
	}
}

func (v visit) stream() {
	p := v.params("Hello")
	p.StreamOptions.IncludeUsage = param.NewOpt(true)
	s := v.client.Chat.Completions.NewStreaming(v.Context(), p)
	defer s.Close()
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			v.Errorf("a chunk that does not fit: %s", s.Current().RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		v.Fatal(err)
	}
	if len(acc.Choices) != 1 || acc.Choices[0].Message.Content != v.says || acc.Choices[0].FinishReason != "stop" || acc.Usage.TotalTokens == 0 {
		v.Errorf("%+v", acc.ChatCompletion)
	}
}

// pixel is the smallest PNG.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (v visit) conversation() {
	if _, err := base64.StdEncoding.DecodeString(pixel); err != nil {
		v.Fatal(err)
	}
	c, err := v.client.Chat.Completions.New(v.Context(), openai.ChatCompletionNewParams{
		Model: v.model, Temperature: param.NewOpt(0.0), MaxCompletionTokens: param.NewOpt(int64(50)),
		Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"END"}},
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.DeveloperMessage("Be brief."), openai.UserMessage("I am Ada."), openai.AssistantMessage("Hello Ada."),
			openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				openai.TextContentPart("What is this?"),
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + pixel, Detail: "low"}),
			}),
		},
	})
	if err != nil || c.Choices[0].Message.Content != v.says {
		v.Errorf("%v: %v", c, err)
	}
}

// failure is err as the API's error, with that status.
func (v visit) failure(err error, status int) *openai.Error {
	v.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Message == "" {
		v.Fatalf("%v, want status %d and a message", err, status)
	}
	return e
}

func (v visit) refusals() {
	p := v.params("Hello")
	_, err := v.client.Chat.Completions.New(v.Context(), p, option.WithAPIKey("gh_wrong"))
	if e := v.failure(err, http.StatusUnauthorized); e.Code != "invalid_api_key" {
		v.Errorf("code %q", e.Code)
	}
	p.Model = "gpt-none"
	_, err = v.client.Chat.Completions.New(v.Context(), p)
	if e := v.failure(err, http.StatusNotFound); e.Code != "model_not_found" {
		v.Errorf("code %q", e.Code)
	}
	p = v.params("Hello")
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather"})}
	_, err = v.client.Chat.Completions.New(v.Context(), p)
	if e := v.failure(err, http.StatusBadRequest); e.Param != "tools" || e.Type != "invalid_request_error" {
		v.Errorf("param %q, type %q", e.Param, e.Type)
	}
}

func (v visit) limited() {
	_, err := v.client.Chat.Completions.New(v.Context(), v.params("Hello"), option.WithMaxRetries(0))
	if e := v.failure(err, http.StatusTooManyRequests); e.Response.Header.Get("Retry-After") == "" {
		v.Errorf("no Retry-After: %v", e.Response.Header)
	}
}

// final: what the gateway says is final is not tried again, with the client's
// own retries on: the gateway's test counts the calls of its model.
func (v visit) final() {
	_, err := v.client.Chat.Completions.New(v.Context(), v.params("Hello"))
	v.failure(err, http.StatusBadGateway)
}

func (v visit) broken() {
	s := v.client.Chat.Completions.NewStreaming(v.Context(), v.params("Hello"))
	defer s.Close()
	text := ""
	for s.Next() {
		if c := s.Current(); len(c.Choices) > 0 {
			text += c.Choices[0].Delta.Content
		}
	}
	if s.Err() == nil || text == "" {
		v.Errorf("%q and the error %v, want both", text, s.Err())
	}
}

// left goes away in the middle of an answer.
func (v visit) left() {
	ctx, cancel := context.WithTimeout(v.Context(), 5*time.Minute)
	defer cancel()
	s := v.client.Chat.Completions.NewStreaming(ctx, v.params("Hello"))
	defer s.Close()
	for s.Next() {
		if c := s.Current(); len(c.Choices) > 0 && c.Choices[0].Delta.Content != "" {
			return
		}
	}
	v.Error("nothing came: ", s.Err())
}
