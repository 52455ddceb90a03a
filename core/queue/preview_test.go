package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// answered posts an answer in chat c with the deletion of its preview p1 behind it, and a
// message after both.
func (f *fixture) answered() {
	f.t.Helper()
	to := core.Address{Bot: "bot", Chat: "c", Place: "c"}
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		for _, r := range []core.Reply{
			{Address: to, Key: "run:1", Parts: []core.Part{{Text: "the answer"}}},
			{Address: to, Key: "preview:run:1", Replaces: "p1", Parts: []core.Part{{}}},
			{Address: to, Key: "notice:1", Parts: []core.Part{{Text: "later"}}},
		} {
			if err := f.out.Post(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// The ids of messages do not go along to another chat or account, nor to a second try.
func TestADeletionWhoseMessageHasNoIDAnyMoreSendsNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		clear func(f *fixture, ctx context.Context, tx *store.Tx) error
	}{
		{"the chat moves", func(f *fixture, ctx context.Context, tx *store.Tx) error { return f.q.Move(ctx, tx, "bot", "c", "c2") }},
		{"another account", nil},
		{"send again in the panel", func(f *fixture, ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'failed' WHERE key = 'preview:run:1'`)
			return err
		}},
		{"show it again in the chat", func(f *fixture, ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'unknown' WHERE key = 'preview:run:1'`); err != nil {
				return err
			}
			return f.out.ShowAgain(ctx, tx, f.deletion(), core.Address{Bot: "bot", Chat: "c"}, "", core.Actor{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.answered()
			if c.clear == nil {
				if err := maintenance.NewAccount(t.Context(), f.db, "bot"); err != nil {
					t.Fatal(err)
				}
			} else {
				f.tx(func(ctx context.Context, tx *store.Tx) error { return c.clear(f, ctx, tx) })
			}
			if c.name == "send again in the panel" {
				if err := f.out.SendAgain(t.Context(), f.deletion(), core.Actor{}); err != nil {
					t.Fatal(err)
				}
			}
			f.serve(nil)
			f.sends("the answer", "later")
		})
	}
}

func TestADeletionThatThePlatformRedirectsToANewChatSendsNothing(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.answers = []core.Delivery{{Outcome: core.Sent, MessageID: "m1"}, {Outcome: core.Refused, MovedTo: "c2"}}
	f.answered()
	f.serve(nil)
	f.sends("the answer", "", "later")
}

// The preview is the only text that the readers have then.
func TestThePreviewOfAnAnswerThatWasRefusedStays(t *testing.T) {
	for _, refused := range []bool{false, true} {
		f := newFixture(t, nil)
		want := []string{"the answer", "", "later"}
		if refused {
			f.plat.answers = []core.Delivery{{Outcome: core.Refused, Reason: "too long"}}
			want = []string{"the answer", "later"}
		}
		f.answered()
		f.serve(nil)
		f.sends(want...)
	}
}

// There is nothing about it that an operator could decide.
func TestAfterARestoreNoDeletionOfAPreviewIsLeftToTheOperator(t *testing.T) {
	f := newFixture(t, nil)
	f.answered()
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		r, err := maintenance.AfterRestore(ctx, tx)
		if r.Sends != 2 {
			t.Errorf("%d sends are left to the operator", r.Sends)
		}
		return err
	})
	unsure, err := f.inspect().Unsure(t.Context(), 10)
	if err != nil || len(unsure) != 2 {
		t.Errorf("unsettled: %+v %v", unsure, err)
	}
	for _, u := range unsure {
		if u.Seq == f.deletion() {
			t.Errorf("the deletion is unsettled: %+v", u)
		}
	}
}

// deletion returns the number of the deletion's row.
func (f *fixture) deletion() (seq int64) {
	f.t.Helper()
	if err := f.db.Get(f.t.Context(), &seq, `SELECT seq FROM outbox WHERE key = 'preview:run:1'`); err != nil {
		f.t.Fatal(err)
	}
	return seq
}

// sends waits until everything is settled, and checks that exactly these texts were sent, in
// this order; "" is the deletion.
func (f *fixture) sends(texts ...string) {
	f.t.Helper()
	f.until("the outbox is settled", func() bool {
		var open int
		if err := f.db.Get(f.t.Context(), &open, `SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'failed')`); err != nil {
			f.t.Fatal(err)
		}
		return open == 0
	})
	var got []string
	for range len(f.plat.seen) {
		out := <-f.plat.seen
		if out.Empty() && !out.Deletes() {
			f.t.Error("an empty message was sent")
		}
		got = append(got, out.Text)
	}
	if len(got) != len(texts) {
		f.t.Fatalf("sent %q, want %q", got, texts)
	}
	for i := range got {
		if got[i] != texts[i] {
			f.t.Errorf("sent %q, want %q", got, texts)
		}
	}
}
