package mcp

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core/tool/mcp/entry"
)

func TestTextAndStructuredContentReachTheModelOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		data  any
		want  string
	}{
		{"the same JSON", []string{`{"city": "Rome", "temp": 21.5}`}, map[string]any{"city": "Rome", "temp": 21.5}, `{"city": "Rome", "temp": 21.5}`},
		{"the same JSON, escaped in another way", []string{`{"city": "K\u00f6ln <x>"}`}, map[string]any{"city": "Köln <x>"}, `{"city": "K\u00f6ln <x>"}`},
		{"a wrapped text", []string{"Two notes\nwere \"found\""}, map[string]any{"result": "Two notes\nwere \"found\""}, "Two notes\nwere \"found\""},
		{"a wrapped number", []string{"42"}, map[string]any{"result": 42.0}, "42"},
		{"a block for each item", []string{`{"id": 1, "t": "a b"}`, `{"id": 2, "t": "c"}`}, map[string]any{"result": []any{map[string]any{"id": 1.0, "t": "a b"}, map[string]any{"id": 2.0, "t": "c"}}}, `{"id": 1, "t": "a b"}` + "\n" + `{"id": 2, "t": "c"}`},
		{"a sentence", []string{"It is 21.5 °C in Rome."}, map[string]any{"city": "Rome", "temp": 21.5, "note": nil}, "It is 21.5 °C in Rome."},
		{"a summary", []string{"Found 2 notes."}, map[string]any{"notes": []any{"alpha", "beta"}}, "Found 2 notes.\n" + `{"notes":["alpha","beta"]}`},
		{"part of a number", []string{"42"}, map[string]any{"result": 4.0}, "42\n" + `{"result":4}`},
		{"no text", nil, map[string]any{"answer": 42.0}, `{"answer":42}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &sdk.CallToolResult{StructuredContent: c.data}
			for _, text := range c.texts {
				r.Content = append(r.Content, &sdk.TextContent{Text: text})
			}
			got := result(&entry.Server{Name: "x"}, r).Text
			_, got, _ = strings.Cut(got, " begins]\n")
			if got = got[:strings.LastIndex(got, "\n[")]; got != c.want {
				t.Errorf("the model reads %q, want %q", got, c.want)
			}
		})
	}
}
