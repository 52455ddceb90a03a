package ask

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

var (
	ctx   = context.Background()
	owner = core.Actor{User: core.Operator, Via: "chat"}
)

type world struct {
	t     *testing.T
	clock *coretest.Clock
	db    *store.DB
	store *Store
}

func newWorld(t *testing.T) *world {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	return &world{t, clock, db, New(db, clock)}
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(a Ask) Ask {
	w.t.Helper()
	a, err := w.tryOpen(a)
	w.ok(err)
	return a
}

func (w *world) tryOpen(a Ask) (out Ask, err error) {
	err = w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		out, err = w.store.Open(ctx, tx, a)
		return err
	})
	return out, err
}

func (w *world) decide(id, option string, by core.Actor) (a Ask, err error) {
	err = w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		a, err = w.store.Decide(ctx, tx, id, option, by)
		return err
	})
	return a, err
}

func (w *world) expire() (out []Ask, err error) {
	err = w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		out, err = w.store.Expire(ctx, tx)
		return err
	})
	return out, err
}

func wantKind(t *testing.T, err error, kind core.Kind) {
	t.Helper()
	if core.KindOf(err) != kind {
		t.Fatalf("error %v is of kind %d, want %d", err, core.KindOf(err), kind)
	}
}

func TestButtonDataFitsTelegram(t *testing.T) {
	w := newWorld(t)
	a := w.open(Ask{Kind: KindPermission, Run: "r"})
	data := a.Data(strings.Repeat("x", 47))
	if len(data) > 64 {
		t.Fatalf("%d bytes", len(data))
	}
	id, option, ok := SplitData(data)
	if !ok || id != a.ID || len(option) != 47 {
		t.Fatalf("%q %q %v", id, option, ok)
	}
	for _, bad := range []string{"", ":", a.ID, a.ID + ":", "short:yes", ":yes"} {
		if _, _, ok := SplitData(bad); ok {
			t.Errorf("%q passes as a button's data", bad)
		}
	}
}

// Lesson 27: approval buttons that lie.
func TestFirstDecisionWinsAndTheOthersLearnWho(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		a := w.open(Ask{Kind: KindPermission, Run: "r", ExpiresAt: w.clock.Now().Add(time.Minute)})
		var mu sync.Mutex
		var won []string
		var lost []error
		var wg sync.WaitGroup
		for _, via := range []string{"panel", "api", "chat", "cli", "panel", "chat"} {
			wg.Go(func() {
				got, err := w.decide(a.ID, via, core.Actor{User: core.Operator, Via: via})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					lost = append(lost, err)
				} else {
					won = append(won, got.Decision)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d deciders won", len(won))
		}
		for _, err := range lost {
			if want := "already decided by operator via " + won[0] + " (03:04 UTC)"; core.KindOf(err) != core.Conflict || core.TextOf(err) != want {
				t.Fatalf("a loser was told %q, want %q", err, want)
			}
		}
		got, err := w.store.ByID(ctx, w.db, a.ID)
		w.ok(err)
		if got.State != Decided || got.Decision != won[0] || got.DecidedBy != "operator via "+won[0] {
			t.Fatalf("stored %+v", got)
		}
	}
	var n int
	w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM audit_events WHERE action = 'ask.decide'`))
	if n != 20 {
		t.Fatalf("%d audit rows for 20 permissions", n)
	}
}

func TestAskExpires(t *testing.T) {
	w := newWorld(t)
	a := w.open(Ask{Kind: KindQuestion, Bot: "tg", Chat: "c", User: 7, ExpiresAt: w.clock.Now().Add(time.Minute)})
	b := w.open(Ask{Kind: KindPairing, Run: "r"})
	w.clock.Advance(time.Minute)
	_, err := w.decide(a.ID, "yes", owner)
	wantKind(t, err, core.Conflict)
	if !strings.Contains(core.TextOf(err), "expired (03:05 UTC)") {
		t.Fatalf("told %q", core.TextOf(err))
	}
	got, err := w.expire()
	w.ok(err)
	if len(got) != 1 || got[0].ID != a.ID || got[0].State != Expired || got[0].Decision != "timeout" {
		t.Fatalf("expired %+v", got)
	}
	if got, err := w.expire(); len(got) != 0 || err != nil {
		t.Fatalf("expired again: %+v %v", got, err)
	}
	_, err = w.decide(b.ID, "approve", owner)
	w.ok(err)
	_, err = w.decide("nothing", "yes", owner)
	wantKind(t, err, core.NotFound)
	_, err = w.decide(b.ID, "", owner)
	wantKind(t, err, core.Invalid)
}

func TestCloseSettlesEveryCopyOfAQuestion(t *testing.T) {
	w := newWorld(t)
	a := w.open(Ask{Kind: KindPairing, Run: "request", Chat: "one"})
	b := w.open(Ask{Kind: KindPairing, Run: "request", Chat: "two"})
	other := w.open(Ask{Kind: KindPairing, Run: "another"})
	sameRun := w.open(Ask{Kind: KindQuestion, Run: "request"})
	var closed []Ask
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		closed, err = w.store.Close(ctx, tx, KindPairing, "request", "Approved by operator via panel.")
		return err
	}))
	if len(closed) != 2 || closed[0].Decision != "Approved by operator via panel." || closed[0].State != Closed {
		t.Fatalf("closed %+v", closed)
	}
	for _, id := range []string{a.ID, b.ID} {
		_, err := w.decide(id, "deny", owner)
		wantKind(t, err, core.Conflict)
	}
	for _, id := range []string{other.ID, sameRun.ID} {
		_, err := w.decide(id, "deny", owner)
		w.ok(err)
	}
}

func TestWaitingFindsThisUsersQuestionHere(t *testing.T) {
	w := newWorld(t)
	end := w.clock.Now().Add(time.Minute)
	q := w.open(Ask{Kind: KindQuestion, Bot: "tg", Chat: "c", User: 7, ExpiresAt: end})
	w.open(Ask{Kind: KindPermission, Bot: "tg", Chat: "c", User: 8, ExpiresAt: end})
	waiting := func(bot, chat string, user int64) (a Ask, ok bool) {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
			a, ok, err = w.store.Waiting(ctx, tx, bot, chat, user)
			return err
		}))
		return a, ok
	}
	if a, ok := waiting("tg", "c", 7); !ok || a.ID != q.ID {
		t.Fatalf("%+v %v", a, ok)
	}
	for _, c := range []struct {
		bot, chat string
		user      int64
	}{{"tg", "c", 8}, {"tg", "c", 0}, {"tg", "d", 7}, {"dc", "c", 7}} {
		if a, ok := waiting(c.bot, c.chat, c.user); ok {
			t.Errorf("%+v finds %+v", c, a)
		}
	}
	w.clock.Advance(time.Minute)
	if _, ok := waiting("tg", "c", 7); ok {
		t.Error("an expired question still waits")
	}
}

func TestOpenAsksAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range maxPairings {
		w.open(Ask{Kind: KindPairing, Run: fmt.Sprint(i)})
	}
	_, err := w.tryOpen(Ask{Kind: KindPairing, Run: "more"})
	wantKind(t, err, core.Busy)
	for i := range maxOpen - maxPairings {
		w.open(Ask{Kind: KindPermission, Run: fmt.Sprint(i), ExpiresAt: w.clock.Now().Add(time.Minute)})
	}
	_, err = w.tryOpen(Ask{Kind: KindPermission})
	wantKind(t, err, core.Busy)
	if got := testutil.ToFloat64(w.store.Gauges()); got != maxOpen {
		t.Fatalf("gatehouse_asks_open is %v", got)
	}
	w.clock.Advance(2 * time.Minute)
	w.open(Ask{Kind: KindPermission})
	_, err = w.tryOpen(Ask{Kind: "gossip"})
	wantKind(t, err, core.Invalid)
}

func TestAnAnswerIsDecidedOnceEvenInTheSameTransaction(t *testing.T) {
	w := newWorld(t)
	a := w.open(Ask{Kind: KindQuestion, User: 7})
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := w.store.Decide(ctx, tx, a.ID, "one", owner); err != nil {
			return err
		}
		if _, err := w.store.Decide(ctx, tx, a.ID, "two", owner); core.KindOf(err) != core.Conflict {
			return fmt.Errorf("second decision: %v", err)
		}
		return nil
	}))
	got, err := w.store.ByID(ctx, w.db, a.ID)
	w.ok(err)
	if got.Decision != "one" {
		t.Fatalf("stored %q", got.Decision)
	}
}

func TestMoveAndForget(t *testing.T) {
	w := newWorld(t)
	a := w.open(Ask{Kind: KindQuestion, Bot: "tg", Chat: "old", User: 7})
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.store.Move(ctx, tx, "tg", "old", "new") }))
	if got, _ := w.store.ByID(ctx, w.db, a.ID); got.Chat != "new" {
		t.Fatalf("chat %q", got.Chat)
	}
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { _, err := w.store.Forget(ctx, tx, 7); return err }))
	_, err := w.store.ByID(ctx, w.db, a.ID)
	wantKind(t, err, core.NotFound)
}

// What was settled is kept for 30 days; what waits is kept whatever its age.
func TestOldAsksAreDeletedOnceTheyAreSettled(t *testing.T) {
	w := newWorld(t)
	old := w.open(Ask{Kind: KindQuestion, User: 7})
	waits := w.open(Ask{Kind: KindQuestion, User: 7})
	if _, err := w.decide(old.ID, "yes", core.Actor{User: 7, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(29 * 24 * time.Hour)
	young := w.open(Ask{Kind: KindQuestion, User: 7})
	if _, err := w.decide(young.ID, "yes", core.Actor{User: 7, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	if n, err := w.store.Prune(ctx); n != 0 || err != nil {
		t.Errorf("after 29 days: %d %v", n, err)
	}
	w.clock.Advance(2 * 24 * time.Hour)
	if n, err := w.store.Prune(ctx); n != 1 || err != nil {
		t.Errorf("after 31 days: %d %v", n, err)
	}
	for id, there := range map[string]bool{old.ID: false, waits.ID: true, young.ID: true} {
		if _, err := w.store.ByID(ctx, w.db, id); (err == nil) != there {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// Choices wait for a day and hold up nobody: however many wait, tools may
func TestChoicesDoNotKeepToolsFromAsking(t *testing.T) {
	w := newWorld(t)
	for i := range maxOpen + 1 {
		w.open(Ask{Kind: KindChoice, Run: fmt.Sprint(i)})
	}
	w.open(Ask{Kind: KindPermission})
	for i := maxOpen + 1; i < maxChoices; i++ {
		w.open(Ask{Kind: KindChoice, Run: fmt.Sprint(i)})
	}
	_, err := w.tryOpen(Ask{Kind: KindChoice})
	wantKind(t, err, core.Busy)
}

// Waits for a next message never take the places of approvals and pairings.
func TestOneWaitForTheNextMessageIsOpenForAUserInAChat(t *testing.T) {
	w := newWorld(t)
	next := func(user int64) Ask {
		return w.open(Ask{Kind: KindNext, Bot: "b", Chat: "c", User: user, Payload: `"journal"`, ExpiresAt: w.clock.Now().Add(time.Minute)})
	}
	for user := range int64(maxOpen + 5) {
		next(user + 1)
	}
	first := next(7)
	second := next(7)
	w.open(Ask{Kind: KindPermission, Run: "r", Bot: "b", Chat: "c", User: 1})
	w.open(Ask{Kind: KindPairing, Run: "q", Bot: "b", Chat: "c", User: 1})
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		if a, err := w.store.ByID(ctx, tx, first.ID); err != nil || a.State != Closed {
			t.Errorf("the earlier one: %+v, %v", a, err)
		}
		if a, open, err := w.store.Waiting(ctx, tx, "b", "c", 7); err != nil || !open || a.ID != second.ID {
			t.Errorf("the later one: %+v, %v", a, err)
		}
		if err := w.store.DropNext(ctx, tx, "b", "c", 7); err != nil {
			return err
		}
		if a, open, err := w.store.Waiting(ctx, tx, "b", "c", 7); err != nil || open {
			t.Errorf("it waits still: %+v, %v", a, err)
		}
		if _, open, err := w.store.Waiting(ctx, tx, "b", "c", 8); err != nil || !open {
			t.Errorf("another user's is gone: %v", err)
		}
		return nil
	}))
}

func TestAnAlbumIsTakenByWhatTookItsFirstMessage(t *testing.T) {
	w := newWorld(t)
	a := w.open(Ask{Kind: KindNext, Bot: "b", Chat: "c", User: 7, Payload: `"journal"`, ExpiresAt: w.clock.Now().Add(time.Minute)})
	took := func(user int64, album string) (ok bool) {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
			_, ok, err = w.store.Took(ctx, tx, "b", "c", user, album, tx.Time().Add(-AlbumsGoOn))
			return err
		}))
		return ok
	}
	if took(7, "a1") {
		t.Error("taken before the first message")
	}
	_, err := w.decide(a.ID, "a1", owner)
	w.ok(err)
	if !took(7, "a1") || took(8, "a1") || took(7, "a2") || took(7, "") {
		t.Errorf("%v, others %v %v %v", took(7, "a1"), took(8, "a1"), took(7, "a2"), took(7, ""))
	}
	w.clock.Advance(AlbumsGoOn + time.Second)
	if took(7, "a1") {
		t.Error("taken long after the first message")
	}
}
