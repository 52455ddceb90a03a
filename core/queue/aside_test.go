package queue_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

func (f *fixture) says(r core.Reply) {
	f.t.Helper()
	r.Address = core.Address{Bot: "bot", Chat: "a", Place: "a"}
	if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error { return f.out.Post(f.t.Context(), tx, r) }); err != nil {
		f.t.Fatal(err)
	}
}

// A message that was shown to one user is edited for that user only, whichever
// process posts the edit, also after a restart.
func TestAnEditOfWhatOnePersonAloneSeesIsForThemAlone(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(nil)
	f.says(core.Reply{Key: "notice:1", Parts: []core.Part{{Text: "your conversations", Aside: "slot"}, {Text: "more of them", Aside: "slot"}}})
	for _, want := range []string{"your conversations", "more of them"} {
		if out := <-f.plat.seen; out.Text != want || out.Aside != "slot" {
			t.Errorf("sent %+v", out)
		}
	}
	f.says(core.Reply{Key: "notice:1", First: 2, Replaces: "@notice:1/0", Parts: []core.Part{{Text: "chosen"}}})
	if out := <-f.plat.seen; out.Text != "chosen" || out.Aside != "slot" || out.Replaces != "m1" {
		t.Errorf("edited as %+v", out)
	}
}

// When an answer can no longer be shown to its one reader, the chat receives one
// notice, without the answer's text, to ask again.
func TestThatAPrivateAnswerCameTooLateIsReportedOnce(t *testing.T) {
	f := newFixture(t, func(o *options) { o.late = "ask again" })
	late := core.Delivery{Outcome: core.Refused, Reason: "too late", Late: true}
	f.plat.answers = []core.Delivery{late, late, {Outcome: core.Sent, MessageID: "m"}}
	f.serve(nil)
	f.says(core.Reply{Key: "notice:1", Parts: []core.Part{{Text: "a secret", Aside: "slot"}, {Text: "another", Aside: "slot"}}})
	for _, want := range []string{"a secret", "another", "ask again"} {
		if out := <-f.plat.seen; out.Text != want || (out.Aside == "") != (want == "ask again") || out.Chat != "a" {
			t.Errorf("sent %+v, want %q", out, want)
		}
	}
	f.settled("a failed (too late)\na failed (too late)\na sent")
}

// What goes to one person alone has no nonce, also where everything else has: a
// crash in its send leaves it in doubt.
func TestACrashInASendToOnePersonAloneIsInDoubt(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.repeats = 2 * time.Minute
	for n, body := range []string{`{"text":"whispered","aside":"slot"}`, `{"text":"said of \"aside\":\"x\""}`} {
		err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO outbox (bot, chat, key, ordinal, body, state, attempts, created_at, sent_at)
				VALUES ('bot', $1, $2, 0, $3, 'sending', 1, $4, $4)`, fmt.Sprint(n), fmt.Sprint("notice:", n), body, core.Stamp(tx.Time()))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.serve(nil)
	if out := <-f.plat.seen; out.Text != `said of "aside":"x"` {
		t.Errorf("sent again: %+v", out)
	}
	rows, err := f.inspect().Unsure(t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].Text != "whispered" {
		t.Errorf("in doubt: %+v, %v", rows, err)
	}
}
