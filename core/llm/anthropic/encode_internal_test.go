package anthropic

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func said(texts ...string) (out []llm.Message) {
	for i, text := range texts {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		out = append(out, llm.Message{Role: role, Blocks: []core.Block{{Type: "text", Text: text}}})
	}
	return out
}

// TestARequestIsWhatTheSDKWouldWrite holds requests against what Anthropic's SDK for Go
// (1.84.0) made of the same, field by field, twice: the second time the tools are in the cache.
func TestARequestIsWhatTheSDKWouldWrite(t *testing.T) {
	data, err := os.ReadFile("testdata/requests.json")
	if err != nil {
		t.Fatal(err)
	}
	var theirs map[string]map[string]map[string]any // by case and model
	if err := json.Unmarshal(data, &theirs); err != nil {
		t.Fatal(err)
	}
	warm := 0.5
	picture := core.Media{Name: "a.png", Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	calls := append(said("look"), llm.Message{Role: "assistant", Blocks: []core.Block{
		{Type: "thinking", Text: "hm", Signature: "s1"}, {Type: "text", Text: "I look."},
		{Type: "tool_use", ID: "c1", Name: "Tool0", Input: json.RawMessage(`{"path": "<x>", "n": 12345678901234567890}`)},
		{Type: "tool_use", ID: "c2", Name: "Tool1", Input: json.RawMessage(`broken`)}}},
		llm.Message{Role: "user", Blocks: []core.Block{
			{Type: "tool_result", ToolUseID: "c1", Text: "found", Media: []core.Media{picture}},
			{Type: "tool_result", ToolUseID: "c2", Text: "", IsError: true}, {Type: "text", Text: "and?"}}})
	for name, req := range map[string]llm.Request{
		"plain":                {Messages: said("a\x00b\xff <&> \u2028")},
		"a system prompt":      {System: "You are \"kind\".", Messages: said("a", "b", "c")},
		"tools":                {System: "s", Tools: append(someTools(3), llm.Tool{Name: "Bare"}), Messages: said("a")},
		"tools marked":         {Tools: someTools(3), Messages: said("a")},
		"calls and results":    {System: "s", Tools: someTools(3), Messages: calls},
		"calls, no tools":      {System: "s", Messages: calls},
		"a picture":            {Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "media", Media: []core.Media{picture}}}}}},
		"settings":             {Temperature: &warm, MaxTokens: 7, Stop: []string{"\n", "END"}, Messages: said("a")},
		"search":               {System: "s", Tools: someTools(2), Search: &llm.Search{Most: 3, Only: []string{"a.example"}}, Messages: said("a")},
		"search without tools": {System: "s", Search: &llm.Search{Most: 3}, Messages: said("a")},
	} {
		for _, model := range []string{"claude-sonnet-5", "claude-3-5-haiku-20241022"} {
			c := newClient(t, Options{Model: model})
			r := &reply{c: c, req: &req}
			for again := range 2 {
				p := r.params(model)
				if name == "search" { // a paused turn that is gone on with
					p.messages = append(p.messages, turn{assistant, []block{{raw: json.RawMessage(`{"type":"server_tool_use","id":"srv1","name":"web_search","input":{"query":"q"}}`)}}})
				}
				whole, err := c.body(&p, req.Tools)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(theirs[name][model], fieldsOf(t, whole)); d != "" {
					t.Errorf("%s to %s, again %d: %s", name, model, again, d)
				}
			}
		}
	}
}

func fieldsOf(t *testing.T, data []byte) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return out
}

func TestToolsAreEncodedOnce(t *testing.T) {
	c := newClient(t, Options{Model: "claude-sonnet-5"})
	r := &reply{c: c, req: &llm.Request{System: "s", Tools: someTools(30), Messages: said("hello")}}
	p := r.params("claude-sonnet-5")
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := c.body(&p, r.req.Tools); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 60 { // 30 tools anew: over 600
		t.Errorf("%.0f allocations for a request whose tools have not changed", allocations)
	}
}

func BenchmarkRequest(b *testing.B) {
	c := newClient(b, Options{Model: "claude-sonnet-5"})
	r := &reply{c: c, req: &llm.Request{System: strings.Repeat("prompt ", 200), Tools: someTools(20), Messages: said(strings.Split(strings.Repeat("hello there ", 21), " ")...)}}
	b.ReportAllocs()
	for b.Loop() {
		p := r.params("claude-sonnet-5")
		if _, err := c.body(&p, r.req.Tools); err != nil {
			b.Fatal(err)
		}
	}
}
