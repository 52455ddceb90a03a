package usage

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, merges and prunes what the ledger's tables keep.
type Tables struct {
	DB      *store.DB
	Ledger  *Ledger
	Rollups *Rollups
}

// Tables returns the tables with data of users.
func (Tables) Tables() []string { return []string{"usage", "rollups", "budgets"} }

// Forget removes the user from the ledger, with their budget. Sums stay. It
// adds the runs, which may have left turns in sessions of other users.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	switch {
	case r.User <= 0:
		return nil
	case r.Last:
		return t.Ledger.Forget(ctx, tx, r.User)
	case r.Rows == 0:
		return nil
	}
	runs, more, err := t.Ledger.ForgetSome(ctx, tx, r.User, r.Rows)
	r.Removed(len(runs), more)
	for id, of := range runs {
		r.Turns[id] = append(r.Turns[id], of...)
	}
	return err
}

// Merge makes the usage of one user another's.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	return t.Ledger.Give(ctx, tx, from, to)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	settle := func(ctx context.Context) (int, error) { return t.Ledger.SettleStale(ctx, t.DB) }
	return []core.Chore{{Name: "rollups", Every: time.Minute, Run: t.Rollups.Fill}, {Name: "reservations", Every: time.Hour, Run: settle}}
}

// Exports returns the statements of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{
		{Name: "usage", Query: `SELECT at, session_id, bot, model, input, output, cache_read, cache_write, micro_usd FROM usage WHERE user_id = $1 ORDER BY at DESC LIMIT $2`},
		{Name: "budgets", Query: `SELECT period, tokens, micro_usd FROM budgets WHERE scope = 'user' AND id = CAST(CAST($1 AS BIGINT) AS TEXT) LIMIT $2`},
	}
}
