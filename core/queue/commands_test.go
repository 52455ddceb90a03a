package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// The rate of commands is three times that of messages, and that of control
// commands four times as high again. A command over it is refused with one
// notice; other senders, and the next minute, have room.
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
	for range 8 {
		send("ann", "help", 0)
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
