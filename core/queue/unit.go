package queue

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

// A unit collects what one transaction hands out: claimed turns and chats
// reserved for sending. It is started only when the transaction has committed.
type unit struct {
	turns []*Turn
	sends outbox.Batch
	early bool // Serve had not started when lanes were claimed

	admitted *core.Inbound // the last update that was admitted
	fresh    Admission     // its admission, which is valid until another is admitted
}

// tx runs f and then claims waiting lanes in the same transaction.
func (q *Queue) tx(ctx context.Context, u *unit, f func(tx *store.Tx) error) error {
	for tries := 0; ; tries++ {
		err := q.db.Tx(ctx, func(tx *store.Tx) error {
			q.cancel(u) // a closure may be run twice
			if err := f(tx); err != nil {
				return err
			}
			return q.claim(ctx, tx, u)
		})
		if err == nil {
			q.start(u)
			return nil
		}
		q.cancel(u)
		var broken *claimError
		if !errors.As(err, &broken) || tries == maxSuspects {
			return err
		}
		q.suspects.add(broken.lane)
		q.o.Log.WarnContext(ctx, "a waiting turn could not be claimed; trying it alone", "lane", broken.lane, "err", broken.err)
	}
}

// cancel returns what a failed unit had reserved.
func (q *Queue) cancel(u *unit) {
	q.outbox.Cancel(&u.sends)
	for _, t := range u.turns {
		q.slots.cancelTurn(t)
	}
	u.turns, u.admitted = nil, nil
}

// admission returns what is known now of the sender of a claimed update.
func (q *Queue) admission(ctx context.Context, tx *store.Tx, u *unit, in *core.Inbound) (Admission, error) {
	if u.admitted != nil && u.admitted.Bot == in.Bot && u.admitted.UpdateID == in.UpdateID {
		return u.fresh, nil
	}
	return q.turns.Claim(ctx, tx, in)
}

func (q *Queue) currentHandler() Handler {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handler
}

func (q *Queue) start(u *unit) {
	if u.early {
		q.ring() // it may have looked while this was not yet committed
	}
	q.mu.Lock()
	handler, work := q.handler, q.work
	q.mu.Unlock()
	for _, t := range u.turns {
		go q.run(work, handler, t)
	}
	q.outbox.Start(&u.sends)
}

func (q *Queue) run(ctx context.Context, handler Handler, t *Turn) {
	defer q.slots.turns.Done()
	ctx, t.cancel = context.WithCancelCause(ctx)
	defer t.cancel(nil)
	defer q.finish(ctx, t)
	handler.Handle(ctx, t)
}

// finish frees the slot of the turn, and fails a turn if its handler returned
// without settling it (a bug, a panic).
func (q *Queue) finish(ctx context.Context, t *Turn) {
	p := recover()
	if p != nil {
		q.o.Log.Error("turn panicked", "lane", t.Lane, "run", t.Run, "panic", p)
	}
	if t.settled {
		return
	}
	q.failUnsettled(context.WithoutCancel(ctx), t)
}

// failUnsettled fails t, or keeps it for settleStuck.
func (q *Queue) failUnsettled(ctx context.Context, t *Turn) {
	q.logErr(ctx, "settle", q.Fail(ctx, t, errUnsettled))
	if !t.settled {
		q.mu.Lock()
		q.stuck = append(q.stuck, t)
		q.mu.Unlock()
	}
}

var errUnsettled = errors.New("the result could not be stored")

// settleStuck fails turns that could not be settled when they ended, once the
// database accepts writes.
func (q *Queue) settleStuck(ctx context.Context) {
	q.mu.Lock()
	stuck := q.stuck
	q.stuck = nil
	q.mu.Unlock()
	for _, t := range stuck {
		q.failUnsettled(ctx, t)
	}
}
