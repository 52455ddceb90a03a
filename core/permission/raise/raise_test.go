package raise

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/texts"
)

var (
	ctx   = context.Background()
	panel = core.Actor{User: core.Operator, Via: "panel"}
)

// A world is a Store over a real database, with what it posts and lapses.
type world struct {
	t      *testing.T
	clock  *coretest.Clock
	db     *store.DB
	store  *Store
	posts  []string // "chat: text's name"
	until  string   // of the last post
	lapsed []lapse
}

type lapse struct {
	session string
	user    int64
	trust   core.Trust
	since   time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: coretest.NewClock(time.Time{})}
	w.db = storetest.Open(t, w.clock)
	w.store = New(w.db, w.clock, w, w, w, func() {})
	return w
}

func (w *world) Post(_ context.Context, _ *store.Tx, to core.Address, _, name string, words texts.Words) error {
	w.posts, w.until = append(w.posts, to.Chat+": "+name), words.Until
	return nil
}

// Timezone is the owner's in this world.
func (w *world) Timezone(_ context.Context, _ store.Queryer, user int64) (*time.Location, error) {
	if user != core.Operator {
		w.t.Errorf("the time zone of user %d is asked for", user)
	}
	return time.FixedZone("CET", 3600), nil
}

func (w *world) Lapse(_ context.Context, _ *store.Tx, session string, user int64, trust core.Trust, since time.Time) error {
	w.lapsed = append(w.lapsed, lapse{session, user, trust, since})
	return nil
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) audits(action string) (n int) {
	w.t.Helper()
	w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM audit_events WHERE action LIKE $1`, action))
	return n
}

func wantKind(t *testing.T, err error, kind core.Kind) {
	t.Helper()
	if core.KindOf(err) != kind {
		t.Fatalf("error %v is of kind %d, want %d", err, core.KindOf(err), kind)
	}
}

// asksFor has the owner ask for trust full in a conversation.
func (w *world) asksFor(session string, user int64, d time.Duration) error {
	return w.db.Tx(ctx, func(tx *store.Tx) error {
		return w.store.Ask(ctx, tx, Raise{Bot: "tg", Chat: "c1", User: user, Session: session, For: d}, core.Actor{User: user, Via: "chat"})
	})
}

func (w *world) raised(session string) bool {
	w.t.Helper()
	_, ok, err := w.store.Held(ctx, w.db, core.Address{Bot: "tg", Chat: "c1"}, session, core.Operator)
	w.ok(err)
	return ok
}

func (w *world) raises() []Raise {
	w.t.Helper()
	rs, err := w.store.Raises(ctx)
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
	w.ok(w.asksFor("s1", core.Operator, 20*time.Minute))
	if w.raised("s1") {
		t.Fatal("asking is enough")
	}
	r := w.raise()
	_, err := w.store.Confirm(ctx, r.ID, 0, core.Actor{User: 2, Via: "panel"})
	wantKind(t, err, core.Denied)
	_, err = w.store.Confirm(ctx, r.ID, Max+time.Minute, panel)
	wantKind(t, err, core.Invalid)
	given, err := w.store.Confirm(ctx, r.ID, 0, panel)
	w.ok(err)
	if given.For != 20*time.Minute || given.By != "operator via panel" || !w.raised("s1") || w.raised("s2") {
		t.Fatalf("given %+v", given)
	}
	wantKind(t, w.store.Deny(ctx, r.ID, panel), core.Conflict)

	// nobody else, nowhere else; and nothing is kept in memory
	again := New(w.db, w.clock, w, w, w, func() {})
	for _, at := range []core.Address{{Bot: "tg", Chat: "c2"}, {Bot: "dc", Chat: "c1"}, {Bot: "tg", Chat: "c1", Place: "g"}} {
		if _, ok, err := again.Held(ctx, w.db, at, "s1", core.Operator); err != nil || ok {
			t.Errorf("raised at %+v: %v", at, err)
		}
	}
	if _, ok, _ := again.Held(ctx, w.db, core.Address{Bot: "tg", Chat: "c1"}, "s1", 2); ok {
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
	if n, err := w.store.Expire(ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := w.store.Expire(ctx); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if last := w.posts[len(w.posts)-1]; last != "c1: raise_ended" {
		t.Errorf("posted %q, want the end in c1", last)
	}
	for action, want := range map[string]int{"raise.ask": 1, "raise.confirm": 1, "raise.end": 1} {
		if n := w.audits(action); n != want {
			t.Errorf("%s: %d rows, want %d", action, n, want)
		}
	}
}

func TestTheNoticeOfAConfirmationIsInTheTimeZoneOfItsUser(t *testing.T) {
	w := newWorld(t)
	w.ok(w.asksFor("s1", core.Operator, 20*time.Minute))
	_, err := w.store.Confirm(ctx, w.raise().ID, 0, panel)
	w.ok(err)
	if w.until != "04:24 CET" { // it is 03:04 UTC
		t.Errorf("valid until %q, want 04:24 CET", w.until)
	}
}

// However trust full ends, what was granted since it began ends with it.
func TestWhatWasGrantedAtTrustFullEndsWithIt(t *testing.T) {
	w := newWorld(t)
	confirm := func() time.Time {
		w.ok(w.asksFor("s1", core.Operator, time.Hour))
		for _, r := range w.raises() {
			if r.State == Asked {
				_, err := w.store.Confirm(ctx, r.ID, 0, panel)
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
		{"in the panel", func() { w.ok(w.store.End(ctx, w.raise().ID, panel)) }},
		{"in chat", func() {
			w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
				_, err := w.store.Drop(ctx, tx, "s1", panel)
				return err
			}))
		}},
		{"by the next one", func() { confirm() }},
		{"by its time", func() {
			w.clock.Advance(time.Hour)
			_, err := w.store.Expire(ctx)
			w.ok(err)
		}},
	} {
		if end.name != "by its time" {
			since = confirm()
		}
		w.clock.Advance(time.Minute)
		w.lapsed = nil
		end.do()
		if len(w.lapsed) != 1 || w.lapsed[0] != (lapse{"s1", core.Operator, core.Full, since.UTC()}) {
			t.Errorf("%s: %+v, since %v", end.name, w.lapsed, since)
		}
		since = w.clock.Now()
	}
	w.ok(w.asksFor("s1", core.Operator, time.Hour)) // what never held ends nothing
	w.lapsed = nil
	w.ok(w.store.Deny(ctx, w.raise().ID, panel))
	if len(w.lapsed) != 0 {
		t.Errorf("denied: %+v", w.lapsed)
	}
}

func TestTrustFullIsRevokedDeniedOrLapses(t *testing.T) {
	w := newWorld(t)
	wantKind(t, w.asksFor("s1", 2, time.Minute), core.Denied)
	wantKind(t, w.asksFor("s1", core.Operator, time.Second), core.Invalid)
	w.ok(w.asksFor("s1", core.Operator, Min))
	w.ok(w.asksFor("s1", core.Operator, Max)) // the newer question stands alone
	w.ok(w.store.Deny(ctx, w.raise().ID, panel))

	w.ok(w.asksFor("s1", core.Operator, time.Hour))
	r := w.raise()
	w.clock.Advance(Wait)
	_, err := w.store.Confirm(ctx, r.ID, 0, panel)
	wantKind(t, err, core.Conflict) // too late

	if _, err := w.store.Expire(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the panel, then by the owner's own word
		w.ok(w.asksFor("s1", core.Operator, time.Hour))
		_, err := w.store.Confirm(ctx, w.raise().ID, 0, panel)
		w.ok(err)
		if w.audits("raise.end") == 0 {
			w.ok(w.store.End(ctx, w.raise().ID, panel))
		} else {
			w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
				held, err := w.store.Drop(ctx, tx, "s1", core.Actor{User: core.Operator, Via: "chat"})
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
