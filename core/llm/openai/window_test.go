package openai_test

import (
	"strings"
	"testing"

	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/wiretest"
)

// llama.cpp says the window beside its text; the others in it.
func TestARefusalOfLengthTellsTheWindow(t *testing.T) {
	for name, x := range map[string]struct {
		reply llmtest.Reply
		want  int
	}{
		"OpenAI": {llmtest.Refuse(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9043 tokens. Please reduce the length of the messages.",
			"invalid_request_error", "context_length_exceeded"), 8192},
		"OpenAI, tokens a minute": {llmtest.Refuse(429, "Request too large for fake-1 in organization org-x on tokens per min (TPM): Limit 30000, Requested 40213. "+
			"The input or output tokens must be reduced in order to run successfully.", "tokens", "rate_limit_exceeded"), 30000},
		"vLLM": {llmtest.Reply{Status: 400, Header: map[string]string{"Content-Type": "application/json"},
			Body: `{"object":"error","message":"This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`}, 6048},
		"llama.cpp": {llmtest.Reply{Status: 400, Header: map[string]string{"Content-Type": "application/json"},
			Body: `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`}, 8192},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{Default: x.reply})
			c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			f := wiretest.Ask(c, "x").Fault(t)
			if f.Code != llm.CodeTooLong || f.Window != x.want || c.About().Window != x.want || s.Total() != 1 {
				t.Errorf("%+v, window %d after %d requests", f, c.About().Window, s.Total())
			}
		})
	}
}

func TestALimitOfTheAnswerIsLearnt(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	s.Script(llmtest.Refuse(400, "max_tokens is too large: 100. This model supports at most 64 completion tokens, whereas you provided 100.", "invalid_request_error", "invalid_value"))
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	for range 2 {
		if g := wiretest.Ask(c, "x"); g.Err != nil {
			t.Fatal(g.Err)
		}
	}
	if r := s.Requests(); len(r) != 3 || !strings.Contains(string(r[1].Body), `"max_tokens":64`) || !strings.Contains(string(r[2].Body), `"max_tokens":64`) {
		t.Errorf("%d requests", len(r))
	}
}
