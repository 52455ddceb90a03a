package guard

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/store"
)

// Asks forgets, merges, moves and prunes the asks.
type Asks struct {
	Store *ask.Store
	Guard *Guard // ends what was not answered in time
}

// Tables returns the tables that keep data of users.
func (Asks) Tables() []string { return []string{"asks"} }

// Forget removes what the user was asked and what was asked for them.
func (a Asks) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) (err error) {
	if r.Last {
		r.Asks, err = a.Store.Forget(ctx, tx, r.User, r.Requests...)
	} else if r.Rows > 0 {
		r.Asks, err = a.Store.ForgetSome(ctx, tx, r.User, r.Rows)
		r.Removed(len(r.Asks), false)
	}
	return err
}

// Merge makes the asks of one user another's.
func (a Asks) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	return a.Store.Give(ctx, tx, from, to)
}

// Move rewrites a chat's id.
func (a Asks) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	return a.Store.Move(ctx, tx, bot, from, to)
}

// Chores returns the table's housekeeping.
func (a Asks) Chores() []core.Chore {
	return []core.Chore{{Name: "asks", Every: time.Minute, Run: a.Guard.Expire}, {Name: "old_asks", Every: 6 * time.Hour, Run: a.Store.Prune}}
}

// Exports returns the statements of an export.
func (Asks) Exports() []store.Export {
	return []store.Export{{Name: "questions", Query: `SELECT kind, bot, chat, payload, state, decision, decided_at, created_at FROM asks WHERE asker = $1 OR user_id = $1 ORDER BY created_at DESC LIMIT $2`}}
}

// Grants forgets what users were granted.
type Grants struct{ Guard *Guard }

// Tables returns the tables that keep data of users.
func (Grants) Tables() []string { return []string{"tool_grants"} }

// Forget removes the grants of the user and of the removed sessions.
func (g Grants) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	for _, id := range r.Sessions {
		if err := g.Guard.ForgetSession(ctx, tx, id); err != nil {
			return err
		}
	}
	if !r.Last || r.User == 0 {
		return nil
	}
	return g.Guard.Forget(ctx, tx, r.User)
}

// Merge ends the grants of the account that is merged: linking grants nothing.
func (g Grants) Merge(ctx context.Context, tx *store.Tx, from, _ int64) error {
	return g.Guard.Forget(ctx, tx, from)
}

// Exports returns the statements of an export.
func (Grants) Exports() []store.Export {
	return []store.Export{{Name: "grants", Query: `SELECT session_id, trust, kind, pattern, created_at FROM tool_grants WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`}}
}
