package anthropic

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// refuse has a reply learn from a refusal of the API.
func refuse(r *reply, said string) bool {
	return r.Learn(r.c.statusFailure(http.StatusBadRequest, http.Header{}, apiError{"invalid_request_error", said}))
}

func newReply(t *testing.T, req *llm.Request) (*reply, *string) {
	unread := new(string)
	c := newClient(t, Options{Model: "claude-opus-4-8"})
	return &reply{Reply: provider.Reply{Link: c.link, Yield: func(d llm.Delta, _ error) bool { *unread += d.Unread; return true }}, c: c, req: req}, unread
}

func TestARefusalOfEarlierThinkingLeavesThinkingOnForOthers(t *testing.T) {
	for name, said := range map[string]string{
		"changed":   "messages.3.content.101: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
		"expected":  "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.claude.com/",
		"signature": "messages.1.content.0: Invalid `signature` in `thinking` block",
	} {
		t.Run(name, func(t *testing.T) {
			r, unread := newReply(t, &llm.Request{Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "media", Media: []core.Media{{Name: "cat.png", Data: []byte("x")}}}}}}})
			if !refuse(r, said) || !r.unsigned || r.direct {
				t.Errorf("first: earlier thinking out %t, this reply without %t", r.unsigned, r.direct)
			}
			if !refuse(r, said) || !r.direct || r.params("claude-opus-4-8").thinks {
				t.Errorf("second: this reply without %t", r.direct)
			}
			if refuse(r, said) && r.c.dialect.noThinking.Load() {
				t.Error("thinking is off for everyone")
			}
			if r.blind || *unread != "" {
				t.Errorf("a file is said to be refused: %q", *unread)
			}
		})
	}
	r, _ := newReply(t, &llm.Request{})
	if !refuse(r, "adaptive thinking is not supported on this model") || !r.c.dialect.noThinking.Load() {
		t.Error("a model that does not think is asked to again")
	}
}

func TestARefusedPictureIsLeftOut(t *testing.T) {
	r, unread := newReply(t, &llm.Request{Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "media", Media: []core.Media{{Name: "cat.png", Type: "image/png", Data: []byte("x")}}}}}}})
	if !refuse(r, "messages.0.content.0.image.source: image dimensions exceed max allowed size: 8000 pixels") || !r.blind {
		t.Errorf("blind %t, %q", r.blind, *unread)
	}
}

// parts sums up a reply: texts, and the error's code.
func parts(t *testing.T, body string) (text, code string) {
	c := newClient(t, Options{Model: "claude-x", HTTP: &http.Client{Transport: play{[]byte(body), 1}}})
	for d, err := range c.Reply(context.Background(), &llm.Request{}) {
		text += d.Text
		if f, ok := errors.AsType[*llm.Fault](err); ok {
			code = f.Code
		}
	}
	return text, code
}

func TestWhatAStreamHasOfUnknownTypesIsPassedOver(t *testing.T) {
	begin, end := "data: {\"type\":\"message_start\",\"message\":{}}\n\n", "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	for name, event := range map[string]string{
		"block": `{"type":"content_block_start","index":0,"content_block":{"type":"new","id":5,"text":[1]}}`,
		"delta": `{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","text":{"a":1}}}`,
		"event": `{"type":"new_event","delta":{"type":"x"}}`,
	} {
		if text, code := parts(t, begin+"data: "+event+"\n\n"+end); text != "hi" || code != "" {
			t.Errorf("%s: %q, %s", name, text, code)
		}
	}
	for name, event := range map[string]string{
		"text": `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":{"a":1}}}`,
		"call": `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":5}}`,
	} {
		if _, code := parts(t, begin+"data: "+event+"\n\n"+end); code == "" {
			t.Errorf("a %s of the wrong form passes", name)
		}
	}
}

func TestAnErrorInAStreamIsReadWithoutABlankLineAndWithoutAType(t *testing.T) {
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	_, want := parts(t, "event: error\ndata: "+overloaded+"\n\n")
	if want == "" {
		t.Fatal("the documented form is no error")
	}
	for name, body := range map[string]string{
		"no type":              "data: " + strings.Replace(overloaded, `"type":"error",`, "", 1) + "\n\n",
		"bare, no blank line":  overloaded,
		"named, no blank line": "event: error\ndata: " + overloaded + "\n",
	} {
		if _, code := parts(t, body); code != want {
			t.Errorf("%s: %q, want %q", name, code, want)
		}
	}
}
