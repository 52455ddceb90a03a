package turns

import (
	"container/list"
	"context"
	"sync"

	"gatehouse/core"
)

// maxRecent limits the turns remembered until their session and run have rows.
const maxRecent = 4096

// A turn is what Recent remembers.
type turn struct {
	user    int64
	session string
	run     string
	update  string
	sum     [32]byte // of the body
	message string   // made of it, where the turn has an Idempotency-Key

	fresh         bool // its ids were drawn for this request
	before, other bool // it was queued before; with another body
}

// Recent remembers the newest turns that were enqueued, so that their events can be followed
// before a run has begun, and so that an idempotency key isn't used for
// something else. Those that a gateway enqueued before are asked for.
type Recent struct {
	stored Repeats

	mu       sync.Mutex
	order    *list.List               // of *turn, oldest first; at most maxRecent
	runs     map[string]*list.Element // by run; as order
	sessions map[string]int64         // session → user; at most as order
	updates  map[string]*turn         // by update id; as order
}

// NewRecent returns an empty Recent. stored knows the turns of an earlier process.
func NewRecent(stored Repeats) *Recent {
	return &Recent{stored: stored, order: list.New(), runs: map[string]*list.Element{}, sessions: map[string]int64{}, updates: map[string]*turn{}}
}

// add remembers t and reports whether its update id is known already, and
// whether it was for another body.
func (c *Recent) add(t *turn) (known, clash bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.updates[t.update]; old != nil {
		return true, old.sum != t.sum
	}
	if c.order.Len() >= maxRecent {
		first := c.order.Front()
		old := c.order.Remove(first).(*turn)
		delete(c.runs, old.run)
		delete(c.sessions, old.session)
		delete(c.updates, old.update)
	}
	c.runs[t.run] = c.order.PushBack(t)
	if _, owned := c.sessions[t.session]; !owned {
		c.sessions[t.session] = t.user
	}
	c.updates[t.update] = t
	return false, false
}

// drop removes a turn that could not be enqueued; not the one that it repeats.
func (c *Recent) drop(t *turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.runs[t.run]; e != nil && e.Value.(*turn) == t {
		c.order.Remove(e)
		delete(c.runs, t.run)
		delete(c.sessions, t.session)
		delete(c.updates, t.update)
	}
}

// Owns reports whether user began session recently, or a turn of it waits.
func (c *Recent) Owns(ctx context.Context, user int64, session string) (bool, error) {
	c.mu.Lock()
	u, ok := c.sessions[session]
	c.mu.Unlock()
	if ok {
		return u == user, nil
	}
	return c.stored.Waits(ctx, core.APIBot, session, sender(user), "")
}

// in reports whether run was enqueued recently for session, or waits.
func (c *Recent) in(ctx context.Context, run, session string) (bool, error) {
	c.mu.Lock()
	e := c.runs[run]
	mine := e != nil && e.Value.(*turn).session == session && !e.Value.(*turn).before
	c.mu.Unlock()
	if mine {
		return true, nil
	}
	return c.stored.Waits(ctx, core.APIBot, session, "", run)
}
