package main

import (
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// A group that becomes a supergroup while the bot answers in it goes on there:
// the answer arrives under the new id, and the conversation is the same one.
func TestAnAnswerFollowsAGroupThatBecomesASupergroup(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	g := w.group(telegramtest.Basic, boss)
	model.Script(llmtest.Say("Henrietta ", "is a boat."), slowly(60))
	whole := strings.TrimSpace(strings.Join(slowly(60).Text, ""))
	first := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("who is Henrietta?")})
	w.answers(g.Conversation(), first.ID)
	w.quiet()
	w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("what does she do?")})
	w.until("the answer is being made", func() bool { return len(w.app.bus.Active()) == 1 })
	super := g.Migrate(boss)
	w.until("the news is stored", func() bool {
		return w.count(`SELECT count(*) FROM places WHERE enabled = 1 AND place = $1`, super.Conversation().Chat) == 1
	})
	w.hears(super.Conversation(), func(m telegramtest.Message) bool { return m.FromBot() && strings.TrimSpace(m.Text) == whole })
	w.quiet()
	next := w.post(boss, super.Conversation(), telegramtest.Outgoing{Text: w.mention("and then?")})
	w.answers(super.Conversation(), next.ID)
	w.quiet()
	all := model.Requests()
	if last := string(all[len(all)-1].Body); !strings.Contains(last, "Henrietta is a boat") {
		t.Errorf("the conversation did not come along: %s", last)
	}
	var open []string
	if err := w.app.db.Select(t.Context(), &open, `SELECT key || ' ' || chat || ' ' || state || ' ' || error FROM outbox WHERE state <> 'sent'`); err != nil || len(open) != 0 {
		t.Errorf("not delivered: %q, %v", open, err)
	}
}

func TestARunWithToolsGoesOnWhenItsGroupBecomesASupergroup(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	g := w.group(telegramtest.Basic, boss)
	call := slowly(60)
	call.Calls = llmtest.CallTool("1", "NoSuchTool", `{}`).Calls
	model.Script(call, llmtest.Say("There is no such tool."))
	w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("try it")})
	w.until("the answer is being made", func() bool { return len(w.app.bus.Active()) == 1 })
	super := g.Migrate(boss)
	w.until("the news is stored", func() bool {
		return w.count(`SELECT count(*) FROM places WHERE enabled = 1 AND place = $1`, super.Conversation().Chat) == 1
	})
	w.hears(super.Conversation(), func(m telegramtest.Message) bool {
		return m.FromBot() && strings.Contains(m.Text, "There is no such tool.")
	})
	w.quiet()
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'done'`); n != 1 {
		t.Errorf("%d runs ended well, want 1", n)
	}
}
