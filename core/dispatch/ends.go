package dispatch

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/runs"
	"gatehouse/core/store"
)

// Ends ends runs that have no result, and publishes their terminal events.
type Ends struct {
	events *runs.Store
	bus    *bus.Bus
	clock  core.Clock
}

// NewEnds returns an Ends over these stores of events.
func NewEnds(events *runs.Store, b *bus.Bus, clock core.Clock) *Ends {
	return &Ends{events, b, clock}
}

// Abandon ends a run that will have no result, and publishes that after the
// commit; it is the queue's Ended.
func (e *Ends) Abandon(ctx context.Context, tx *store.Tx, run string) error {
	end, ok, err := e.events.Abandon(ctx, tx, run)
	if ok {
		tx.OnCommit(func() { e.publish(end) })
	}
	return err
}

// refuse ends a run that may not begin, and publishes that after the commit.
func (e *Ends) refuse(ctx context.Context, tx *store.Tx, row runs.Row, failed core.Failed) error {
	end, err := e.events.Refused(ctx, tx, row, failed)
	tx.OnCommit(func() { e.publish(end) })
	return err
}

// publish sends the end of a run, which is stored, to its readers. The caller
// does so before the next run of the session can begin and take the readers.
func (e *Ends) publish(end runs.Ended) {
	stream := e.bus.Begin(bus.Info{Run: end.Run, Session: end.Session, Bot: end.Bot, Chat: end.Chat, User: end.User, Attempt: end.Attempt, Started: e.clock.Now()})
	for _, event := range end.Events {
		stream.Publish(event)
	}
	stream.End()
}
