package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// halt stops the messages of these updates for a session.
func (f *fixture) halt(session string, updates ...string) {
	f.t.Helper()
	if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error {
		var rows []int64
		for _, id := range updates {
			var seq int64
			if err := tx.Get(f.t.Context(), &seq, `SELECT seq FROM inbox WHERE update_id = $1`, id); err != nil {
				return err
			}
			rows = append(rows, seq)
		}
		return f.q.Stop(f.t.Context(), tx, session, rows)
	}); err != nil {
		f.t.Fatal(err)
	}
}

// stops returns a handler that reports what it handles: its text, and whether it was stopped for the session s.
func (f *fixture) stops(of func() *queue.Queue) (handle func(context.Context, *queue.Turn), seen <-chan string) {
	c := make(chan string, 10)
	return func(_ context.Context, turn *queue.Turn) {
		text := ""
		for _, r := range turn.Rows {
			text += r.Text + " "
		}
		if isStopped(turn, "s") {
			text += "stopped"
		}
		if isStopped(turn, "") || isStopped(turn, "another") {
			f.t.Errorf("%s: another session's turn is stopped", text)
		}
		c <- text
		if err := answer(of(), turn); err != nil {
			f.t.Error(err)
		}
	}, c
}

func isStopped(t *queue.Turn, session string) bool {
	_, is := t.Stopped(session)
	return is
}

// What the user has stopped is not answered because the gateway was restarted meanwhile.
func TestATurnThatIsStoppedWhileItWaitsIsStoppedAfterARestart(t *testing.T) {
	f := newFixture(t, collecting)
	f.put(msg(1, "a", "ann", "one"), msg(2, "a", "ann", "two"))
	f.halt("s", "1", "2")
	f.put(msg(3, "a", "ann", "three"))
	next := f.newQueue(collecting)
	handle, seen := f.stops(func() *queue.Queue { return next })
	defer f.serveQueue(next, handle)()
	for _, want := range []string{"one two stopped", "three "} { // what is written later does not join it
		if got := <-seen; got != want {
			t.Fatalf("the turn is %q, want %q", got, want)
		}
	}
}

// It may be claimed already when it is stopped, and begin only then.
func TestATurnThatIsClaimedAndHasNotBegunIsStopped(t *testing.T) {
	f := newFixture(t, nil)
	begun, begin := make(chan *queue.Turn), make(chan struct{})
	done := make(chan bool)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		begun <- turn
		<-begin
		done <- isStopped(turn, "s")
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "a", "ann", "one"), msg(2, "b", "bob", "two"))
	<-begun
	<-begun
	f.halt("s", "1")
	close(begin)
	if one, two := <-done, <-done; one == two {
		t.Errorf("stopped: %v and %v, want one of both", one, two)
	}
	f.reply()
	f.reply()
	f.halt("s", "2") // it is answered
	var stopped []string
	if err := f.db.Select(t.Context(), &stopped, `SELECT update_id FROM inbox WHERE stopped <> ''`); err != nil || !slices.Equal(stopped, []string{"1"}) {
		t.Errorf("stopped: %v, %v", stopped, err)
	}
}

func TestAStopThatIsNotCommittedStopsNothing(t *testing.T) {
	f := newFixture(t, nil)
	begun, begin := make(chan *queue.Turn, 1), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		begun <- turn
		<-begin
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "a", "ann", "one"))
	turn, no := <-begun, errors.New("no")
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(f.q.Stop(t.Context(), tx, "s", []int64{turn.Seq()}), no)
	}); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if isStopped(turn, "s") {
		t.Error("the turn is stopped")
	}
	close(begin)
	f.reply()
}

// The operator who retries a dead letter wants it answered.
func TestARetryOfAStoppedMessageIsAnswered(t *testing.T) {
	f := newFixture(t, nil)
	f.put(msg(1, "a", "ann", "one"))
	f.halt("s", "1")
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE inbox SET state = 'dead'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	handle, seen := f.stops(func() *queue.Queue { return f.q })
	f.serve(handle)
	dead, err := f.inspect().Dead(t.Context(), 1)
	if err != nil || len(dead) != 1 {
		t.Fatal(dead, err)
	}
	if err := f.q.Retry(t.Context(), dead[0].Seq, core.Actor{User: 1}); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "one " {
		t.Errorf("the turn is %q", got)
	}
}
