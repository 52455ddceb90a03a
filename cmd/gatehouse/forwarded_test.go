package main

import (
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// A stranger writes a command to the owner, who forwards it to the bot: it is a message.
func TestAForwardedCommandApprovesNoOne(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	eve := w.sim.NewUser("Eve")
	eve.Send("hello")
	w.hears(eve.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "code") })
	rs, err := w.app.pairing.Requests(t.Context(), "", 10)
	if err != nil || len(rs) != 1 {
		t.Fatal(rs, err)
	}
	w.quiet()
	m := w.post(boss, boss.DM(), telegramtest.Outgoing{Text: "/approve " + rs[0].Code + " vault", Forward: eve.ID()})
	if got := w.answers(boss.DM(), m.ID); got.Text != fakeSays {
		t.Fatalf("the forwarded command was answered %q", got.Text)
	}
	if text, _ := lastAsked(model); !strings.Contains(text, "Forwarded, not written by the sender") || !strings.Contains(text, "> /approve "+rs[0].Code+" vault") {
		t.Errorf("the model was asked %q", text)
	}
	if n := w.count(`SELECT count(*) FROM access WHERE user_id <> 1`); n != 0 {
		t.Error("the stranger has access")
	}
}

// A forwarded code is none: its owner writes it.
func TestAForwardedCodeIsNotUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	code, _, err := w.app.pairing.Codes.NewClaim(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	ada, eve := w.sim.NewUser("Ada"), w.sim.NewUser("Eve")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{Text: "/claim " + code, Forward: eve.ID()})
	w.answers(ada.DM(), m.ID) // as any message of a stranger is
	if n := w.count(`SELECT count(*) FROM identities`); n != 0 {
		t.Error("a forwarded code was used")
	}
	w.replies(ada, "/claim "+code)
	if n := w.count(`SELECT count(*) FROM identities WHERE user_id = 1`); n != 1 {
		t.Error("the forwarded code cannot be used by its owner any more")
	}
}

// A question waits for the user's own answer: what the user forwards meanwhile is a message.
func TestAForwardedMessageAnswersNoQuestion(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	ada, eve := w.guest("Ada"), w.sim.NewUser("Eve")
	model.Script(llmtest.CallTool("1", "AskUserQuestion", `{"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black"}]}]}`),
		llmtest.Reply{Text: []string{"Poured."}})
	mark := ada.Send("Make tea.")
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "Which tea?") })
	w.post(ada, ada.DM(), telegramtest.Outgoing{Text: "Hemlock", Forward: eve.ID()})
	w.until("the forwarded message waits behind the one that is answered", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state IN ('ready', 'limited')`) == 2
	})
	if n := w.count(`SELECT count(*) FROM asks WHERE kind = 'question' AND state = 'open'`); n != 1 {
		t.Fatal("the forwarded message answered the question")
	}
	ada.Send("Black")
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && m.Text == "Poured." })
	if text, _ := lastAsked(model); !strings.Contains(text, "Black") {
		t.Errorf("the model read %q", text)
	}
	w.quiet()
	if text, _ := lastAsked(model); !strings.Contains(text, "Forwarded, not written by the sender") || !strings.Contains(text, "> Hemlock") {
		t.Errorf("the forwarded message reached the model as %q", text)
	}
}

// A command that waits for the user's next message waits for one that they write.
func TestAForwardedMessageIsNotTheNextMessageOfACommand(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss, eve := w.boss(), w.sim.NewUser("Eve")
	w.replies(boss, "/journal")
	for _, album := range []string{"", "a"} {
		out := telegramtest.Outgoing{Text: "I give Eve everything.", Forward: eve.ID(), Album: album}
		if album != "" {
			out.File = &telegramtest.File{Kind: "photo", Data: smallPicture(t)}
		}
		m := w.post(boss, boss.DM(), out)
		if got := w.answers(boss.DM(), m.ID); got.Text != fakeSays {
			t.Errorf("answered %q", got.Text)
		}
		w.quiet()
	}
	if got := w.replies(boss, "We had tea."); !strings.Contains(got.Text, "Added to your journal") {
		t.Errorf("answered %q", got.Text)
	}
	if got := w.diary("Daily"); !strings.Contains(got, "We had tea.") || strings.Contains(got, "Eve") {
		t.Errorf("the journal has %q", got)
	}
}
