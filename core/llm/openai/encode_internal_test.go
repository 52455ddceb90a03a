package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core"
	"gatehouse/core/llm"
)

func someTools(n int) []llm.Tool {
	var out []llm.Tool
	for i := range n {
		out = append(out, llm.Tool{Name: fmt.Sprintf("Tool%d", i), About: strings.Repeat("What it does. ", 20),
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"A <file> & more"}},"required":["path"]}`)})
	}
	return out
}

func TestARequestIsWhatTheAPIReads(t *testing.T) {
	warm := 0.5
	req := &llm.Request{System: "You are \"kind\" <& true>.\u2028", Tools: append(someTools(2), llm.Tool{Name: "Bare"}), MaxTokens: 100,
		Temperature: &warm, Stop: []string{"\n"},
		Messages: []llm.Message{
			{Role: "user", Blocks: []core.Block{{Type: "text", Text: "a\x00b\xff"}}},
			{Role: "assistant", Blocks: []core.Block{{Type: "text", Text: "I look."}, {Type: "tool_use", ID: "c1", Name: "Tool0", Input: json.RawMessage(`{"path": "<x>"}`)}}},
			{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "c1", Text: "found"}, {Type: "text", Text: "and?"}}},
		}}
	var c Client
	for _, again := range []bool{false, true} {
		data, err := c.request("m", req, llm.MediaLimits{})
		if err != nil {
			t.Fatal(err)
		}
		var got api.ChatCompletionRequest
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("again %v: %v in %s", again, err, data)
		}
		if got.Model != "m" || !got.Stream || !got.StreamOptions.IncludeUsage || !bytes.Contains(data, []byte(`"max_tokens":100`)) || got.Temperature != 0.5 || !reflect.DeepEqual(got.Stop, []string{"\n"}) {
			t.Errorf("settings: %s", data)
		}
		var said []string
		for _, m := range got.Messages {
			line := m.Role + ": " + m.Content
			for _, call := range m.ToolCalls {
				line += call.ID + " " + call.Function.Name + call.Function.Arguments
			}
			said = append(said, line+m.ToolCallID)
		}
		want := []string{"system: You are \"kind\" <& true>.\u2028", "user: a\x00b\ufffd", `assistant: I look.c1 Tool0{"path":"<x>"}`, "tool: foundc1", "user: and?"}
		if !reflect.DeepEqual(said, want) {
			t.Errorf("messages %q, want %q", said, want)
		}
		if len(got.Tools) != 3 || got.Tools[1].Function.Name != "Tool1" || got.Tools[1].Type != "function" || got.Tools[2].Function.Parameters == nil ||
			!strings.Contains(fmt.Sprint(got.Tools[0].Function.Parameters), "A <file> & more") {
			t.Errorf("tools: %s", data)
		}
	}
}

func TestToolsAreEncodedOnce(t *testing.T) {
	var c Client
	req := &llm.Request{Tools: someTools(30), Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: "hello"}}}}}
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := c.request("m", req, llm.MediaLimits{}); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 25 { // 30 tools anew: about 300
		t.Errorf("%.0f allocations for a request whose tools have not changed", allocations)
	}
}

func BenchmarkRequest(b *testing.B) {
	var c Client
	req := &llm.Request{System: strings.Repeat("prompt ", 200), Tools: someTools(20), Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: "hello"}}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.request("m", req, llm.MediaLimits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}`)
	b.ReportAllocs()
	for b.Loop() {
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			b.Fatal(err)
		}
	}
}
