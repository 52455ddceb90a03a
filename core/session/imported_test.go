package session_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/session/bring"
)

// Claude Code goes on with a conversation that was imported from another system, with all that
// was said there, and the gateway with what Claude Code adds.
func TestClaudeCodeResumesAnImportedConversation(t *testing.T) {
	h := open(t)
	cli := newClaude(t, h)
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	line := func(role, id, parent string, blocks ...core.Block) foreign.Message {
		at = at.Add(time.Minute)
		return foreign.Message{Role: role, ID: id, Parent: parent, At: at, Blocks: blocks}
	}
	text := func(s string) core.Block { return core.Block{Type: "text", Text: s} }
	b := bring.New(bring.Options{DB: h.db, Vault: h.vault, Sessions: h.Store, Clock: h.clock, Log: slog.New(slog.DiscardHandler)})
	c := &foreign.Conversation{Source: "chatgpt", ID: uuid.NewString(), Title: "Green tea", Created: at, Leaf: "4", Messages: []foreign.Message{
		line("user", "1", "", text("how long?")),
		line("assistant", "2", "1", core.Block{Type: "thinking", Text: "hm"}, text("I look."), core.Block{Type: "tool_use", ID: "call_x", Name: "browser", Input: []byte(`{"q":"tea"}`)}),
		line("user", "3", "2", core.Block{Type: "tool_result", ToolUseID: "call_x", Text: "two minutes"}),
		line("user", "9", "2", text("another branch")),
		line("assistant", "4", "3", text("Two minutes.")),
	}}
	out, err := b.Tree(t.Context(), c, foreign.Terms{User: core.Operator, Trust: core.Full}, nil)
	if err != nil || out.Kind != foreign.Added {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := cli.say(out.Session, "and black tea?"); got != "Hello from the fake model." {
		t.Errorf("it answers %q", got)
	}
	got := flat(cli.asked())
	if want := "u:how long? a:I look. call:call_x result:call_x(texttwo minutes) a:Two minutes. u:and black tea?"; got != want {
		t.Errorf("the CLI asks with\n%s, want\n%s", got, want)
	}
	sess, err := h.ByID(t.Context(), h.db, out.Session)
	if err != nil {
		t.Fatal(err)
	}
	history, r, err := h.open(h.Store, sess).History(100_000)
	last := texts(history)
	if err = errors.Join(err, accepted(t)(history)); err != nil || r.Info.Method != "sdk_resume" || !strings.HasSuffix(strings.Join(last, " "), "u:and black tea? a:Hello from the fake model.") {
		t.Errorf("%v, %+v, %v", last, r.Info, err)
	}
	if again, err := b.Tree(t.Context(), c, foreign.Terms{User: core.Operator, Trust: core.Full}, nil); err != nil || again.Kind != foreign.Continued {
		t.Errorf("imported again: %+v, %v", again, err)
	}
	h.turn(h.Store, sess, uuid.NewString(), "said here", "answered here")
	cli.say(out.Session, "thanks")
	if got := flat(cli.asked()); !strings.HasSuffix(got, "u:said here a:answered here u:thanks") {
		t.Errorf("the CLI asks with %s", got)
	}
}
