package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/queue/flight"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

// A stopper is a platform whose sends end at a phase.
type stopper struct {
	*platform
	stop    func(f core.Flight) (core.Delivery, bool) // what a send does; false: it never ends
	stopped chan struct{}
	end     chan struct{}
}

func (s stopper) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	d, answered := s.stop(out.Flight)
	if answered {
		return d
	}
	s.stopped <- struct{}{}
	<-s.end
	return core.Delivery{Outcome: core.Unknown}
}

// A killed gateway's sends are decided on by how far they got: what had not begun is
// sent, what the platform has accepted is not sent again, and the outcome of the rest is unknown.
func TestAfterAKillEachSendIsDecidedOnByHowFarItGot(t *testing.T) {
	for name, c := range map[string]struct {
		stop   func(f core.Flight) (core.Delivery, bool)
		record bool
		spoil  bool // another boot's record
		sent   bool // again, by the next process
		state  string
	}{
		"before the first byte": {stop: func(core.Flight) (d core.Delivery, answered bool) { return }, record: true, sent: true, state: "sent"},
		"while it is written": {stop: func(f core.Flight) (d core.Delivery, answered bool) { _ = f.Writing(); return }, record: true,
			state: "unknown"},
		"before the answer": {stop: func(f core.Flight) (d core.Delivery, answered bool) { _ = f.Writing(); f.Written(); return }, record: true,
			state: "unknown"},
		"before the first byte, without a record": {stop: func(core.Flight) (d core.Delivery, answered bool) { return }, state: "unknown"},
		"before the first byte, and the record is not believed": {stop: func(core.Flight) (d core.Delivery, answered bool) { return },
			record: true, spoil: true, state: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sends")
			quiet := slog.New(slog.DiscardHandler)
			s := stopper{newPlatform(), c.stop, make(chan struct{}, 1), make(chan struct{})}
			f := newFixture(t, func(o *options) {
				o.sender = s
				if c.record {
					o.flight = flight.Open(path, "db", quiet)
				}
			})
			defer close(s.end)
			f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
			f.put(msg(1, "a", "ann", "one"))
			<-s.stopped
			owner := "db"
			if c.spoil {
				owner = "another"
			}
			next := f.newQueue(func(o *options) {
				if c.record {
					o.flight = flight.Open(path, owner, quiet)
				}
			})
			stop := f.serveQueue(next, nil)
			if c.sent {
				if out := <-f.plat.seen; out.Text != "re: one" || out.Repeat {
					t.Errorf("sent: %+v", out)
				}
			}
			stop()
			if got := f.outState(); got != c.state {
				t.Errorf("the row is %s, want %s", got, c.state)
			}
			if len(f.plat.seen) > 0 {
				t.Errorf("sent again: %+v", <-f.plat.seen)
			}
		})
	}
}

func (f *fixture) outState() (state string) {
	f.t.Helper()
	if err := f.db.Get(f.t.Context(), &state, `SELECT state FROM outbox`); err != nil {
		f.t.Fatal(err)
	}
	return state
}

// What a killed process has recorded of a row that the database still calls sending:
// the commit of the outcome is what did not come to pass.
func TestARowIsDecidedOnByTheRecordOfItsLastAttemptAlone(t *testing.T) {
	for name, c := range map[string]struct {
		mark  flight.Mark
		do    func(s *flight.Send)
		state string
		id    string
	}{
		"accepted":             {flight.Mark{Seq: 1, Epoch: 1, Attempt: 2}, func(s *flight.Send) { _ = s.Writing(); s.Accepted("m17") }, "sent", "m17"},
		"refused":              {flight.Mark{Seq: 1, Epoch: 1, Attempt: 2}, func(s *flight.Send) { _ = s.Writing(); s.NotAccepted() }, "sent", "m1"},
		"of another attempt":   {flight.Mark{Seq: 1, Epoch: 1, Attempt: 1}, func(*flight.Send) {}, "unknown", ""},
		"of an earlier epoch":  {flight.Mark{Seq: 1, Epoch: 0, Attempt: 2}, func(*flight.Send) {}, "unknown", ""},
		"of the epoch to come": {flight.Mark{Seq: 1, Epoch: 2, Attempt: 2}, func(*flight.Send) {}, "unknown", ""},
		"of another row":       {flight.Mark{Seq: 2, Epoch: 1, Attempt: 2}, func(*flight.Send) {}, "unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sends")
			quiet := slog.New(slog.DiscardHandler)
			old := flight.Open(path, "db", quiet)
			old.Begin()
			s, err := old.Mark(c.mark)
			if err != nil {
				t.Fatal(err)
			}
			c.do(s)
			f := newFixture(t, func(o *options) { o.flight = flight.Open(path, "db", quiet) })
			err = f.db.Tx(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.Exec(t.Context(), `INSERT INTO lease (name, owner, epoch, until) VALUES ('bot:bot', 'node', 1, '')`); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `INSERT INTO outbox (bot, chat, key, ordinal, body, state, attempts, created_at, sent_at)
					VALUES ('bot', 'a', 'run:1', 0, '{"text":"half sent"}', 'sending', 2, $1, $1)`, core.Stamp(tx.Time()))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			f.serve(nil)
			f.stop()
			var row struct {
				State string `db:"state"`
				ID    string `db:"platform_message_id"`
			}
			if err := f.db.Get(t.Context(), &row, `SELECT state, platform_message_id FROM outbox`); err != nil {
				t.Fatal(err)
			}
			if row.State != c.state || row.ID != c.id {
				t.Errorf("the row is %+v, want %s %q", row, c.state, c.id)
			}
		})
	}
}

// However many chats have an answer, no more of them are marked than are sent at once: what
// waits is not of unknown outcome after a crash.
func TestNoMoreRowsAreMarkedThanAreSentAtOnce(t *testing.T) {
	s := slow{platform: newPlatform(), hold: make(chan struct{})}
	f := newFixture(t, func(o *options) { o.sender = s })
	f.plat = s.platform
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	const chats, atOnce = 400, outbox.MaxAtOnce
	for i := range chats {
		f.put(msg(i, fmt.Sprint(i), "ann", "one"))
	}
	count := func(state string) (n int) {
		if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM outbox WHERE state = $1`, state); err != nil {
			t.Fatal(err)
		}
		return n
	}
	f.until("all are answered", func() bool { return count("ready")+count("sending") == chats })
	f.until("as many are marked as are sent", func() bool { return count("sending") == atOnce })
	close(s.hold)
	for range chats {
		f.reply()
	}
}

// until waits until ok.
func (f *fixture) until(what string, ok func() bool) {
	f.t.Helper()
	for !ok() {
		select {
		case <-f.t.Context().Done():
			f.t.Fatal(what)
		default: // each ok asks the database, whose goroutines must run too
			runtime.Gosched()
		}
	}
}
