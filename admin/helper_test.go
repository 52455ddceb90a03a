package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

// helped is a conversation in which a helper worked on a call of Task.
func (w *world) helped() (id string) {
	said := func(role string, blocks ...core.Block) transcript.Message {
		return transcript.Message{Role: role, Model: "anthropic/claude-sonnet-4-5", Blocks: blocks}
	}
	const run = "0192fa3c-41aa-7000-8000-0000000000e1"
	id = w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "611"}, User: 2, Trust: core.Vault, Source: "telegram"}, "Seed orders", run,
		said("user", text("What did we order last year?")),
		said("assistant", text("A helper looks it up."), core.Block{Type: "tool_use", ID: "t1", Name: "Task", Input: json.RawMessage(`{"description":"look up the orders","prompt":"List last year's seed orders."}`)}))
	d, err := w.chats.Detail(context.Background(), id)
	must(err)
	c, err := w.chats.Open(context.Background(), d.Session)
	must(err)
	side := c.Side(run, "t1")
	must(errors.Join(
		side.Append(said("user", text("List last year's seed orders."))),
		side.Append(said("assistant", core.Block{Type: "tool_use", ID: "g1", Name: "Grep", Input: json.RawMessage(`{"pattern":"ordered","path":"Allotment"}`)}, core.Block{Type: "tool_use", ID: "r1", Name: "Read", Input: json.RawMessage(`{"file_path":"Allotment/orders.md"}`)})),
		side.Append(said("user", core.Block{Type: "tool_result", ToolUseID: "g1", Text: "Allotment/orders.md:3: ordered peas <b>"})),
		side.Append(said("user", core.Block{Type: "tool_result", ToolUseID: "r1", Text: "there is no such file", IsError: true})),
		side.Append(said("assistant", text("Peas and leeks."))),
		c.Append(run, 2, said("user", core.Block{Type: "tool_result", ToolUseID: "t1", Text: "Peas and leeks."}), said("assistant", text("Peas and leeks, in March."))),
		c.Sync(), c.Close()))
	return id
}

func TestWhatAHelperDidIsFoldedBelowItsCall(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	page := s.get("/admin/chats/" + s.world.helped())
	page.has(t, `<details class="aside helper"><summary>The helper: 2 tool calls</summary>`, "ordered peas &lt;b&gt;", "Peas and leeks, in March.")
	page.lacks(t, "<h2>List last year", "ordered peas <b>")
	s.get("/admin/chats/"+s.world.ada).lacks(t, "The helper:")
}
