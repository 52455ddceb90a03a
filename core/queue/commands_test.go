package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// The rate of commands is three times that of messages, and that of control
// commands four times as high again. A command over it is refused with one
// notice; other senders, and the next minute, have room. Those that only show something count
// as ordinary commands: they cannot take the room of /stop.
func TestCommandsHaveARateOfTheirOwn(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 2, Per: time.Minute} } })
	n := 0
	send := func(who, command string, at time.Duration) {
		n++
		m := msg(n, "dm", who, "")
		m.Kind, m.Command, m.At = core.KindCommand, command, m.At.Add(at)
		f.put(m)
	}
	states := func() (ready, refused int) {
		for _, s := range strings.Fields(f.states()) {
			switch _, state, _ := strings.Cut(s, ":"); state {
			case "ready":
				ready++
			case "refused":
				refused++
			}
		}
		return ready, refused
	}
	notices := func() (n int) {
		if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM outbox WHERE body LIKE '%too many%'`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 8 {
		send("ann", []string{"help", "show"}[i%2], 0)
	}
	if ready, refused := states(); fmt.Sprint(ready, refused, notices()) != "6 2 1" {
		t.Errorf("after 8 commands: %d ready, %d refused, %d notices", ready, refused, notices())
	}
	send("ann", "stop", 0)
	send("bob", "help", 0)
	f.put(msg(100, "dm", "ann", "a message"))
	if ready, refused := states(); fmt.Sprint(ready, refused) != "9 2" {
		t.Errorf("a stop, another person and a message: %d ready, %d refused", ready, refused)
	}
	for range 20 {
		send("ann", "stop", 0)
	}
	if ready, refused := states(); fmt.Sprint(ready, refused) != "26 5" { // 24 commands of ann's, 1 of bob's, 1 message
		t.Errorf("after 21 stops: %d ready, %d refused", ready, refused)
	}
	send("ann", "help", time.Minute+time.Second)
	if ready, _ := states(); ready != 27 {
		t.Errorf("a minute later: %d ready", ready)
	}
}

// cmd returns a command in a chat.
func cmd(n int, chat, who, name string) core.Inbound {
	m := msg(n, chat, who, "")
	m.Kind, m.Command = core.KindCommand, name
	return m
}

// laneOf returns the lane that an update was put into.
func (f *fixture) laneOf(n int) (lane string) {
	f.t.Helper()
	if err := f.db.Get(f.t.Context(), &lane, `SELECT lane FROM inbox WHERE update_id = $1`, fmt.Sprint(n)); err != nil {
		f.t.Fatal(err)
	}
	return lane
}

// A command that only shows something is handled while a run is under way, and /stop
// while that is.
func TestNeitherARunNorACommandThatShowsDelaysAStop(t *testing.T) {
	f := newFixture(t, nil)
	over := make(chan struct{})
	f.serve(func(ctx context.Context, turn *queue.Turn) {
		f.turns <- turn
		<-over
		_ = f.q.Ack(ctx, turn, queue.Result{})
	})
	defer close(over)
	begins := func(n int) {
		t.Helper()
		select {
		case turn := <-f.turns:
			if got := turn.First().UpdateID; got != fmt.Sprint(n) {
				t.Errorf("update %s is handled, want %d", got, n)
			}
		case <-time.After(time.Minute):
			t.Fatalf("update %d waits", n)
		}
	}
	f.put(msg(1, "a", "ann", "a long task"))
	begins(1)
	f.put(cmd(2, "a", "ann", "show"))
	begins(2)
	f.put(cmd(3, "a", "ann", "show"), cmd(4, "a", "bob", "stop"))
	begins(4)
}

// What a command changes is shown by the one that its sender writes next, also where both come
// in one page. Others' commands are not waited for.
func TestACommandThatShowsFollowsItsSendersEarlierCommand(t *testing.T) {
	f := newFixture(t, nil)
	f.put(cmd(1, "a", "ann", "show"), cmd(2, "a", "ann", "set"), cmd(3, "a", "ann", "show"), cmd(4, "a", "ann", "show"),
		cmd(5, "a", "bob", "show"), cmd(6, "b", "ann", "show"), cmd(7, "a", "ann", "stop"))
	for n, want := range []string{1: "bot|a#shows", 2: "bot|a", 3: "bot|a", 4: "bot|a", 5: "bot|a#shows", 6: "bot|b#shows", 7: "bot|a#control"} {
		if n > 0 && f.laneOf(n) != want {
			t.Errorf("update %d is in the lane %s, want %s", n, f.laneOf(n), want)
		}
	}
	f.serve(func(ctx context.Context, turn *queue.Turn) {
		if err := f.q.Ack(ctx, turn, queue.Result{}); err != nil {
			t.Error(err)
		}
	})
	f.until("all are handled", func() bool { return !strings.Contains(f.states(), "ready") })
	f.put(cmd(8, "a", "ann", "show"))
	if got := f.laneOf(8); got != "bot|a#shows" {
		t.Errorf("after the command was handled: %s", got)
	}
}
