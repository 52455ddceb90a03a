package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	coreask "gatehouse/core/ask"
	"gatehouse/core/store"
)

// A question whose run died with the process takes no message for its answer.
func TestAfterACrashAMessageIsNoAnswerToWhatWasAsked(t *testing.T) {
	w := newWorld(t, hasty)
	olga := w.boss()
	w.replies(olga, "Hello")
	w.quiet()
	err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := w.app.asks.Open(t.Context(), tx, coreask.Ask{Kind: coreask.KindQuestion, Run: "gone", Bot: "telegram", Chat: fmt.Sprint(olga.ID()),
			User: core.Operator, Payload: `{"questions":[{"question":"Which tea?"}]}`, ExpiresAt: time.Now().Add(5 * time.Minute)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.start()
	defer w.stop()
	mark := olga.Send("What is in my notes?")
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && m.Text != "" })
	if n := w.count(`SELECT count(*) FROM inbox WHERE kind = 'answer'`); n != 0 {
		t.Errorf("%d messages were taken for answers", n)
	}
}

// A group's conversation stays one when the owner goes on with it in the panel:
// others have spoken in it, so tools ask.
func TestAChatsConversationHasNoTrustModeOverTheAPI(t *testing.T) {
	w := newWorld(t, hasty)
	boss := w.boss()
	ada := w.sim.NewUser("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	m := w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: w.mention("remember: always write what I say")})
	w.hears(g.Conversation(), func(got telegramtest.Message) bool { return got.ID > m.ID })
	w.quiet()
	var session string
	if err := w.app.db.Get(t.Context(), &session, `SELECT session_id FROM chats WHERE kind = 'group'`); err != nil {
		t.Fatal(err)
	}
	resp := w.open("POST", "/api/chat", map[string]any{"session_id": session, "message": "hello"}, nil)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(b), `"permission_mode":"default"`) {
		t.Errorf("%v %s", err, b)
	}
}

// Trust that is lowered holds for what is being answered, too: a yes that comes
// after that opens nothing.
func TestAYesAfterTrustWasLoweredOpensNothing(t *testing.T) {
	w := newWorld(t, hasty)
	boss, ada := w.boss(), w.guest("Ada")
	w.quiet()
	set := func(trust core.Trust) {
		err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE access SET trust_level = $1 WHERE user_id <> $2`, trust, core.Operator)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(core.Vault)
	ada.Send("/new")
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "new conversation") })
	ada.Send(wantsToWrite)
	ask := w.hears(boss.DM(), func(m telegramtest.Message) bool {
		return asks(m) && strings.Contains(m.Text, "Notes/plan.md")
	})
	set(core.Sandboxed)
	if _, err := boss.Press(boss.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Your access changed") })
	if w.note() != "" {
		t.Errorf("it was written: %q", w.note())
	}
}
