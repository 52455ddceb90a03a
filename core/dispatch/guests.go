package dispatch

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
)

// guestRuns is how many runs of one guest are at work at once, so that nobody
// who was let in takes every slot.
const guestRuns = 3

var errGuest = errors.New("a guest has as many runs as one may")

// enter gives a guest's run its place; call leave when it has ended. Beyond
// guestRuns a chat's message waits without a slot until there is one or ctx
// ends, and a request is refused with errGuest. People whom only their group
// knows have a place in each group: its line.
func (d *Dispatcher) enter(ctx context.Context, t *queue.Turn, turn *orchestrator.Turn) (leave func(), err error) {
	if turn.Admin || turn.Trust > core.Sandboxed || turn.User == 0 {
		return func() {}, nil
	}
	waiting := false
	defer func() {
		if waiting {
			d.o.Queue.Unpark(t)
		}
	}()
	for {
		d.mu.Lock()
		free, freed := d.guests[turn.User] < guestRuns, d.freed
		if free {
			d.guests[turn.User]++
		}
		d.mu.Unlock()
		switch {
		case free:
			return func() { d.leaveGuest(turn.User) }, nil
		case t.First().Turn != nil:
			return nil, errGuest
		case !waiting:
			waiting = true
			d.o.Queue.Park(t)
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return func() {}, nil // the run ends as its context says
		}
	}
}

func (d *Dispatcher) leaveGuest(user int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.guests[user]--; d.guests[user] <= 0 {
		delete(d.guests, user)
	}
	close(d.freed)
	d.freed = make(chan struct{})
}
