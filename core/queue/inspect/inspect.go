// Package inspect reads the queue's tables for those who watch it: the panel,
// metrics, the doctor and the rollups of usage. It writes nothing, so what it
// returns may be out of date as soon as it is returned.
package inspect

import (
	"gatehouse/core"
	"gatehouse/core/store"
)

// Options of New.
type Options struct {
	Clock   core.Clock
	Leased  func() []string // bots that this node serves; nil: none
	Running func() int      // turns that run on this node; nil: 0
}

// A Reader reads the queue's tables. Its methods may be called concurrently.
type Reader struct {
	db *store.DB
	o  Options
}

// New returns a Reader of the queue in db.
func New(db *store.DB, o Options) *Reader {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Leased == nil {
		o.Leased = func() []string { return nil }
	}
	if o.Running == nil {
		o.Running = func() int { return 0 }
	}
	return &Reader{db: db, o: o}
}
