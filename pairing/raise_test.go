package pairing

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// asksFor has the owner ask for trust full in a conversation.
func (w *world) asksFor(session string, user int64, d time.Duration) error {
	return w.db.Tx(ctx, func(tx *store.Tx) error {
		return w.book.AskRaise(ctx, tx, Raise{Bot: "tg", Chat: "c1", User: user, Session: session, For: d}, core.Actor{User: user, Via: "chat"})
	})
}

func (w *world) raised(session string) bool {
	w.t.Helper()
	_, ok, err := w.book.Raised(ctx, w.db, core.Address{Bot: "tg", Chat: "c1"}, session, core.Operator)
	w.ok(err)
	return ok
}

func (w *world) raises() []Raise {
	w.t.Helper()
	rs, err := w.book.Raises(ctx)
	w.ok(err)
	return rs
}

func (w *world) raise() Raise {
	w.t.Helper()
	rs := w.raises()
	if len(rs) != 1 {
		w.t.Fatalf("%d raises, want 1", len(rs))
	}
	return rs[0]
}

func TestTrustFullIsAskedForConfirmedAndOverAtItsTime(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.ok(w.asksFor("s1", core.Operator, 20*time.Minute))
	if w.raised("s1") {
		t.Fatal("asking is enough")
	}
	r := w.raise()
	_, err := w.book.ConfirmRaise(ctx, r.ID, 0, core.Actor{User: 2, Via: "panel"})
	wantKind(t, err, core.Denied)
	_, err = w.book.ConfirmRaise(ctx, r.ID, RaiseMax+time.Minute, panel)
	wantKind(t, err, core.Invalid)
	given, err := w.book.ConfirmRaise(ctx, r.ID, 0, panel)
	w.ok(err)
	if given.For != 20*time.Minute || given.By != "operator via panel" || !w.raised("s1") || w.raised("s2") {
		t.Fatalf("given %+v", given)
	}
	wantKind(t, w.book.DenyRaise(ctx, r.ID, panel), core.Conflict)

	// nobody else, nowhere else; and nothing is kept in memory
	again := New(w.db, w.book.o, w.mail, nil, nil)
	for _, at := range []core.Address{{Bot: "tg", Chat: "c2"}, {Bot: "dc", Chat: "c1"}, {Bot: "tg", Chat: "c1", Place: "g"}} {
		if _, ok, err := again.Raised(ctx, w.db, at, "s1", core.Operator); err != nil || ok {
			t.Errorf("raised at %+v: %v", at, err)
		}
	}
	if _, ok, _ := again.Raised(ctx, w.db, core.Address{Bot: "tg", Chat: "c1"}, "s1", 2); ok {
		t.Error("somebody else is raised")
	}

	w.clock.Advance(20*time.Minute - time.Second)
	if !w.raised("s1") {
		t.Fatal("over too early")
	}
	w.clock.Advance(time.Second)
	if w.raised("s1") {
		t.Fatal("it goes on")
	}
	if n, err := w.book.EndRaises(ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := w.book.EndRaises(ctx); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if last := w.mail.posts[len(w.mail.posts)-1]; last.Chat != "c1" || !strings.Contains(last.Parts[0].Text, "is over") {
		t.Errorf("the chat is told %+v", last)
	}
	for action, want := range map[string]int{"raise.ask": 1, "raise.confirm": 1, "raise.end": 1} {
		if n := w.audits(action); n != want {
			t.Errorf("%s: %d rows, want %d", action, n, want)
		}
	}
}

// However trust full ends, what was granted since it began ends with it.
func TestWhatWasGrantedAtTrustFullEndsWithIt(t *testing.T) {
	type lapsed struct {
		session string
		user    int64
		trust   core.Trust
		since   time.Time
	}
	var got []lapsed
	w := newWorld(t)
	w.book.o.Lapse = func(_ context.Context, _ *store.Tx, session string, user int64, trust core.Trust, since time.Time) error {
		got = append(got, lapsed{session, user, trust, since})
		return nil
	}
	confirm := func() time.Time {
		w.ok(w.asksFor("s1", core.Operator, time.Hour))
		for _, r := range w.raises() {
			if r.State == RaiseAsked {
				_, err := w.book.ConfirmRaise(ctx, r.ID, 0, panel)
				w.ok(err)
			}
		}
		return w.clock.Now()
	}
	var since time.Time
	for _, end := range []struct {
		name string
		do   func()
	}{
		{"in the panel", func() { w.ok(w.book.EndRaise(ctx, w.raise().ID, panel)) }},
		{"in chat", func() {
			w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
				_, err := w.book.DropRaises(ctx, tx, "s1", panel)
				return err
			}))
		}},
		{"by the next one", func() { confirm() }},
		{"by its time", func() {
			w.clock.Advance(time.Hour)
			_, err := w.book.EndRaises(ctx)
			w.ok(err)
		}},
	} {
		if end.name != "by its time" {
			since = confirm()
		}
		w.clock.Advance(time.Minute)
		got = nil
		end.do()
		if len(got) != 1 || got[0] != (lapsed{"s1", core.Operator, core.Full, since.UTC()}) {
			t.Errorf("%s: %+v, since %v", end.name, got, since)
		}
		since = w.clock.Now()
	}
	w.ok(w.asksFor("s1", core.Operator, time.Hour)) // what never held ends nothing
	got = nil
	w.ok(w.book.DenyRaise(ctx, w.raise().ID, panel))
	if len(got) != 0 {
		t.Errorf("denied: %+v", got)
	}
}

func TestTrustFullIsTakenBackDeniedOrLapses(t *testing.T) {
	w := newWorld(t)
	wantKind(t, w.asksFor("s1", 2, time.Minute), core.Denied)
	wantKind(t, w.asksFor("s1", core.Operator, time.Second), core.Invalid)
	w.ok(w.asksFor("s1", core.Operator, RaiseMin))
	w.ok(w.asksFor("s1", core.Operator, RaiseMax)) // the newer question stands alone
	w.ok(w.book.DenyRaise(ctx, w.raise().ID, panel))

	w.ok(w.asksFor("s1", core.Operator, time.Hour))
	r := w.raise()
	w.clock.Advance(RaiseWait)
	_, err := w.book.ConfirmRaise(ctx, r.ID, 0, panel)
	wantKind(t, err, core.Conflict) // too late

	if _, err := w.book.EndRaises(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the panel, then by the owner's own word
		w.ok(w.asksFor("s1", core.Operator, time.Hour))
		_, err := w.book.ConfirmRaise(ctx, w.raise().ID, 0, panel)
		w.ok(err)
		if w.audits("raise.end") == 0 {
			w.ok(w.book.EndRaise(ctx, w.raise().ID, panel))
		} else {
			w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
				held, err := w.book.DropRaises(ctx, tx, "s1", core.Actor{User: core.Operator, Via: "chat"})
				if !held {
					t.Error("nothing was held")
				}
				return err
			}))
		}
		if w.raised("s1") {
			t.Fatal("it goes on")
		}
	}
	for action, want := range map[string]int{"raise.deny": 1, "raise.lapse": 1, "raise.end": 2} {
		if n := w.audits(action); n != want {
			t.Errorf("%s: %d rows, want %d", action, n, want)
		}
	}
}
