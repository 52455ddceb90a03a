package admin_test

import (
	"encoding/json"
	"testing"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

// mcpTalk makes a conversation with a call of an MCP server's tool.
func (w *world) mcpTalk() string {
	input := `{"title":"Dig bed <four>","attendees":["ada@example.org","ines@example.org"],"when":{"day":"Sunday","hour":10},"notes":"Bring spades.\n\u202eRain: move.","public":false}`
	return w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "39902299"}, User: 2, Trust: core.Vault, Source: "telegram"}, "Calendar", "r-mcp",
		transcript.Message{Role: "user", Blocks: []core.Block{text("Put it in the calendar.")}},
		transcript.Message{Role: "assistant", Model: "local/x", Blocks: []core.Block{
			{Type: "tool_use", ID: "c1", Name: "mcp__calendar__create_event", Input: json.RawMessage(input)},
			{Type: "tool_use", ID: "c2", Name: "Grep", Input: json.RawMessage(`{"pattern":"bed"}`)}}},
		transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "c1", Text: "created"}, {Type: "tool_result", ToolUseID: "c2", Text: "none"}}})
}

func TestTheInputOfAnMCPToolIsATableOfNamesAndValues(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/chats/" + s.world.mcpTalk())
	a.has(t, `<table class="fields"><caption>Asked with</caption>`,
		`<th scope="row">title</th><td class="exact" dir="auto">Dig bed &lt;four&gt;</td></tr><tr><th scope="row">attendees</th>`,
		`<th scope="row">notes</th><td class="exact" dir="auto">Bring spades.`+"\n"+`\u{202E}Rain: move.</td>`,
		`<th scope="row">public</th><td class="exact">false</td>`, `&#34;hour&#34;: 10`,
		`<p class="hint">Asked with</p><pre class="exact">{`) // as other tools' inputs are shown
	a.lacks(t, "\u202e")
}
