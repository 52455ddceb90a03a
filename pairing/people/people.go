// Package users keeps who has been let in: users with their accounts on
// platforms, what each may do on which bot, and who is blocked. It owns the
// tables users, identities, access and blocks.
//
// A user is identified by (platform, the platform's immutable id); names are
// hostile text and never an identity.
package people

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

// UndoFor is how long a decision can be undone.
const UndoFor = 10 * time.Second

// Requests are the pairing requests, as decisions about users change them.
type Requests interface {
	// Revoked notes that an account lost gone on a bot, so that it counts as denied
	// from now on: on the whole bot where nothing is left to it there, else for the scope
	// and place of each. It reports whether the account counted so before.
	Revoked(ctx context.Context, tx *store.Tx, bot string, account core.Identity, gone []Grant, whole bool, by core.Actor) (before bool, err error)
	// Readmitted notes that an access was written: to a user who had lost it, too.
	Readmitted(ctx context.Context, tx *store.Tx, a Grant) error
	// DenyOpen denies the pending requests of an account, without a notice to it.
	DenyOpen(ctx context.Context, tx *store.Tx, bot string, account core.Identity, by core.Actor) error
	// Uncool lets a denied account ask again at once. What a block took that was made at a
	// time counts as revoked then, by whoever made it.
	Uncool(ctx context.Context, tx *store.Tx, bot string, account core.Identity, took []Grant, at, by string) error
}

// Places are the groups of bots.
type Places interface {
	IsEnabled(ctx context.Context, tx *store.Tx, bot, place string) (bool, error)
}

// Changes reports what was decided, after the commit.
type Changes interface {
	// Decided rings the topics, and counts the decision if it is not "".
	Decided(tx *store.Tx, bot, decision string, topics ...core.Topic)
	// Abort stops what a user has running with a bot.
	Abort(tx *store.Tx, bot string, user int64)
}

// A Store is the tables of users. It is safe for concurrent use.
type Store struct {
	db       *store.DB
	clock    core.Clock
	bots     bots.Bots
	places   Places
	requests Requests
	changes  Changes
	ungrant  func(ctx context.Context, tx *store.Tx, user int64) error
}

// New returns a Store over db. ungrant ends what a user was granted in conversations, in
// the transaction; nil: nothing was granted.
func New(db *store.DB, clock core.Clock, b bots.Bots, p Places, r Requests, c Changes, ungrant func(context.Context, *store.Tx, int64) error) *Store {
	if ungrant == nil {
		ungrant = func(context.Context, *store.Tx, int64) error { return nil }
	}
	return &Store{db: db, clock: clock, bots: b, places: p, requests: r, changes: c, ungrant: ungrant}
}
