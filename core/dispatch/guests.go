package dispatch

import (
	"context"
	"errors"
	"sync"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
)

// guestRuns bounds the concurrent runs of one guest, so that no guest takes
// every slot.
const guestRuns = 3

var errGuest = errors.New("a guest has as many runs as one may")

// guests bounds the concurrent runs of each guest.
type guests struct {
	queue *queue.Queue

	mu     sync.Mutex
	active map[int64]int // runs by guest; bounded by the queue's slots
	freed  chan struct{} // closed when a guest's run has ended
}

func newGuests(q *queue.Queue) *guests {
	return &guests{queue: q, active: map[int64]int{}, freed: make(chan struct{})}
}

// enter counts the run of a guest until leave is called. Beyond guestRuns a
// chat's message waits, without a slot, until another run ends or ctx does, and
// a request is refused with errGuest. Users who are known only as members of a
// group are bounded by the lane of each group.
func (g *guests) enter(ctx context.Context, t *queue.Turn, turn *orchestrator.Turn) (leave func(), err error) {
	if turn.Admin || turn.Trust > core.Sandboxed || turn.User == 0 {
		return func() {}, nil
	}
	waiting := false
	defer func() {
		if waiting {
			g.queue.Unpark(t)
		}
	}()
	for {
		g.mu.Lock()
		free, freed := g.active[turn.User] < guestRuns, g.freed
		if free {
			g.active[turn.User]++
		}
		g.mu.Unlock()
		switch {
		case free:
			return func() { g.leave(turn.User) }, nil
		case t.First().Turn != nil:
			return nil, errGuest
		case !waiting:
			waiting = true
			g.queue.Park(t)
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return func() {}, nil // the run ends as its context states
		}
	}
}

func (g *guests) leave(user int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active[user]--; g.active[user] <= 0 {
		delete(g.active, user)
	}
	close(g.freed)
	g.freed = make(chan struct{})
}
