package main

import (
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// In a group everybody writes to one bot: an answer is stopped by whoever asked
// for it, or by the owner, and by nobody else.
func TestNoOneStopsAnotherUsersAnswerInAGroup(t *testing.T) {
	w, model := newModelWorld(t, nil)
	boss, ada, eve := w.boss(), w.guest("Ada"), w.guest("Eve")
	g := w.group(telegramtest.Supergroup, boss, ada, eve)
	for _, who := range []*telegramtest.User{ada, boss} {
		model.Script(llmtest.Reply{Text: []string{"One. "}, Hang: true})
		asked := w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: w.mention("count")})
		w.until("the answer is being made", func() bool { return len(w.app.bus.Active()) == 1 })
		no := w.post(eve, g.Conversation(), telegramtest.Outgoing{Text: "/stop"})
		if m := w.answers(g.Conversation(), no.ID); !strings.Contains(m.Text, "another user") {
			t.Errorf("Eve reads %q", m.Text)
		}
		if len(w.app.bus.Active()) != 1 {
			t.Fatal("Eve stopped Ada's answer")
		}
		w.post(who, g.Conversation(), telegramtest.Outgoing{Text: "/stop"})
		w.until("the answer is stopped", func() bool { return len(w.app.bus.Active()) == 0 })
		_ = asked
		w.quiet()
	}
}
