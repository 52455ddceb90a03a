package outbox

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue/flight"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// Another gateway may have replaced one that was frozen between the mark of a send and the send.
func TestAMarkThatIsOldIsNotSentByWhoMayHaveBeenReplaced(t *testing.T) {
	db := storetest.Open(t, nil)
	b := New(db, Options{})
	now := time.Now()
	for name, at := range map[string]time.Time{"frozen": now.Add(-maxMark - time.Second), "suspended, which the monotonic clock does not count": now.Round(0).Add(-maxMark - time.Second)} {
		if got := b.stale(&marked{at: at}); got != store.OnServer(db.Path()) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if b.stale(&marked{at: now}) {
		t.Error("a mark of now is old")
	}
	cut := false
	b.o.Cut = func() bool { return cut }
	if b.stale(&marked{at: now}) {
		t.Error("a gateway that is not cut off sends nothing")
	}
	if cut = true; b.stale(&marked{at: now}) != store.OnServer(db.Path()) {
		t.Error("one that is cut off sends what it has marked")
	}
}

// sent counts what leaves.
type sent int

func (*sent) Wait(core.Address) time.Duration { return 0 }
func (*sent) Repeats(string) time.Duration    { return 0 }
func (s *sent) Send(context.Context, core.Outgoing) core.Delivery {
	*s++
	return core.Delivery{Outcome: core.Sent, MessageID: "1"}
}

func TestAReplyThatWasMarkedLongAgoDoesNotLeave(t *testing.T) {
	for name, age := range map[string]time.Duration{"old": maxMark + time.Second, "new": 0} {
		t.Run(name, func(t *testing.T) {
			db, left := storetest.Open(t, nil), sent(0)
			b := New(db, Options{})
			b.sender = &left
			to := core.Address{Bot: "b", Chat: "c"}
			if err := db.Tx(t.Context(), func(tx *store.Tx) error {
				if err := b.Post(t.Context(), tx, core.Reply{Address: to, Key: "k", Parts: []core.Part{{Text: "hello"}}}); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `UPDATE outbox SET state = 'sending', attempts = 1`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			m := marked{Outgoing: core.Outgoing{Address: to}, at: time.Now().Add(-age)}
			if err := db.Get(t.Context(), &m.Seq, `SELECT seq FROM outbox`); err != nil {
				t.Fatal(err)
			}
			b.sends.Add(1)
			b.deliver(t.Context(), chatKey{"b", "c"}, &m)
			var state string
			if err := db.Get(t.Context(), &state, `SELECT state FROM outbox`); err != nil {
				t.Fatal(err)
			}
			if stays := age > 0 && store.OnServer(db.Path()); stays != (left == 0) || stays != (state == "ready") {
				t.Errorf("%d left, and the reply is %s", left, state)
			}
		})
	}
}

// Connecting may take until another gateway has the place of this one, also where sends are not recorded.
func TestWhatBecomesStaleWhileItConnectsDoesNotLeave(t *testing.T) {
	db := storetest.Open(t, nil)
	cut := false
	b := New(db, Options{Cut: func() bool { return cut }})
	b.sender = connecting(func(out core.Outgoing) core.Delivery {
		cut = true
		if err := out.Flight.Writing(); (err != nil) != store.OnServer(db.Path()) {
			t.Errorf("the first byte: %v", err)
		}
		return core.Delivery{Outcome: core.Refused}
	})
	to := core.Address{Bot: "b", Chat: "c"}
	var m marked
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		if err := b.Post(t.Context(), tx, core.Reply{Address: to, Key: "k", Parts: []core.Part{{Text: "hello"}}}); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `UPDATE outbox SET state = 'sending', attempts = 1`); err != nil {
			return err
		}
		f, err := b.o.Flight.Mark(flight.Mark{Seq: 1, Attempt: 1})
		m = newMarked(core.Outgoing{Address: to}, f, place{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Get(t.Context(), &m.Seq, `SELECT seq FROM outbox`); err != nil {
		t.Fatal(err)
	}
	b.sends.Add(1)
	b.deliver(t.Context(), chatKey{"b", "c"}, &m)
}

// A connecting sender is one whose connection takes long.
type connecting func(core.Outgoing) core.Delivery

func (connecting) Wait(core.Address) time.Duration { return 0 }
func (connecting) Repeats(string) time.Duration    { return 0 }
func (c connecting) Send(_ context.Context, out core.Outgoing) core.Delivery {
	return c(out)
}
