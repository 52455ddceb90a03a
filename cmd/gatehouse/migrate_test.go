package main

import (
	"fmt"
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
		return w.count(`SELECT count(*) FROM places WHERE enabled = 1 AND place = $1`, fmt.Sprint(super.Conversation().Chat)) == 1
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
		return w.count(`SELECT count(*) FROM places WHERE enabled = 1 AND place = $1`, fmt.Sprint(super.Conversation().Chat)) == 1
	})
	w.hears(super.Conversation(), func(m telegramtest.Message) bool {
		return m.FromBot() && strings.Contains(m.Text, "There is no such tool.")
	})
	w.quiet()
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'done'`); n != 1 {
		t.Errorf("%d runs ended well, want 1", n)
	}
}

// migrates makes g a supergroup, and waits until that is stored.
func (w *world) migrates(g *telegramtest.Group, by *telegramtest.User) *telegramtest.Group {
	w.t.Helper()
	super := g.Migrate(by)
	w.until("the new id is stored", func() bool {
		return w.count(`SELECT count(*) FROM places WHERE enabled = 1 AND place = $1`, fmt.Sprint(super.Conversation().Chat)) == 1
	})
	return super
}

// waitsBehind posts a message in the supergroup, and checks that it waits for the one run.
func (w *world) waitsBehind(u *telegramtest.User, super *telegramtest.Group, text string) {
	w.t.Helper()
	w.post(u, super.Conversation(), telegramtest.Outgoing{Text: w.mention(text)})
	w.until("the message is stored", func() bool {
		return w.sim.Bot().Pending() == 0 && w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state IN ('ready', 'limited')`) == 2
	})
	if n := w.count(`SELECT count(*) FROM lane WHERE owner <> ''`); n != 1 || len(w.app.bus.Active()) != 1 {
		w.t.Errorf("%d lanes are claimed and %d runs are active in one conversation", n, len(w.app.bus.Active()))
	}
}

func TestMessagesInASupergroupWaitForTheRunThatBeganInItsOldGroup(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss, ada, eve := w.boss(), w.guest("Ada"), w.guest("Eve")
	g := w.group(telegramtest.Basic, boss, ada, eve)
	model.Script(llmtest.Reply{Text: []string{"One. "}, Hang: true}, llmtest.Say("The second answer."), llmtest.Say("The third answer."))
	w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: w.mention("count")})
	w.until("the answer is being made", func() bool { return len(w.app.bus.Active()) == 1 })
	super := w.migrates(g, boss)
	w.waitsBehind(ada, super, "and then?")
	no := w.post(eve, super.Conversation(), telegramtest.Outgoing{Text: "/stop"})
	if m := w.answers(super.Conversation(), no.ID); !strings.Contains(m.Text, "another user") {
		t.Errorf("Eve reads %q", m.Text)
	}
	status := w.post(ada, super.Conversation(), telegramtest.Outgoing{Text: "/status"})
	if m := w.answers(super.Conversation(), status.ID); !strings.Contains(m.Text, "waiting: 1") {
		t.Errorf("the status is %q", m.Text)
	}
	w.post(ada, super.Conversation(), telegramtest.Outgoing{Text: "/stop"})
	w.hears(super.Conversation(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "The second answer.") })
	w.quiet()
	if n := w.count(`SELECT count(*) FROM runs AS a JOIN runs AS b ON a.started < b.started AND b.started < a.ended`); n != 0 {
		t.Errorf("%d runs began before an earlier one had ended", n)
	}
	third := w.post(ada, super.Conversation(), telegramtest.Outgoing{Text: w.mention("go on")})
	w.answers(super.Conversation(), third.ID)
	w.quiet()
	if n := w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND lane = bot || '|' || $1`, fmt.Sprint(super.Conversation().Chat)); n != 1 {
		t.Errorf("%d messages were in the supergroup's own lane, want the one after the old lane was empty", n)
	}
}

func TestMessagesInASupergroupWaitForTheRunOfItsOldGroupAfterARestart(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, hasty)
	boss := w.boss()
	g := w.group(telegramtest.Basic, boss)
	hangs := llmtest.Reply{Text: []string{"One. "}, Hang: true}
	model.Script(hangs, hangs, llmtest.Say("The second answer."))
	w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("count")})
	w.until("the model is asked", func() bool { return model.Total() == 1 })
	super := w.migrates(g, boss)
	w.stop()
	w.start()
	defer w.stop()
	w.until("the model is asked again", func() bool { return model.Total() == 2 })
	w.waitsBehind(boss, super, "and then?")
	w.post(boss, super.Conversation(), telegramtest.Outgoing{Text: "/stop"})
	w.hears(super.Conversation(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "The second answer.") })
}

// The run asks after its group has become a supergroup: the question is asked and
// answered there.
func TestAQuestionOfARunIsAskedInTheSupergroupThatItsGroupBecame(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	g := w.group(telegramtest.Basic, boss)
	call := slowly(60)
	call.Calls = llmtest.CallTool("1", "AskUserQuestion", `{"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black"}]}]}`).Calls
	model.Script(call, llmtest.Say("Then it is that."))
	w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("make tea")})
	w.until("the answer is being made", func() bool { return len(w.app.bus.Active()) == 1 })
	super := w.migrates(g, boss)
	ask := w.hears(super.Conversation(), func(m telegramtest.Message) bool { return asks(m) && strings.Contains(m.Text, "Which tea?") })
	if n := w.count(`SELECT count(*) FROM asks WHERE state = 'open' AND chat = $1`, fmt.Sprint(super.Conversation().Chat)); n != 1 {
		t.Errorf("%d questions are open in the new chat, want 1", n)
	}
	if _, err := boss.Press(super.Conversation(), ask.ID, telegramButton(t, ask, "Green")); err != nil {
		t.Fatal(err)
	}
	w.hears(super.Conversation(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Then it is that.") })
	w.quiet()
	if n := w.count(`SELECT count(*) FROM asks WHERE state = 'decided'`); n != 1 {
		t.Errorf("%d questions were answered, want 1", n)
	}
}
