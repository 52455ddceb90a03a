// Package allowance counts the tokens that the memory uses in a day for what no one waits
// for, and says who may use how many of them.
package allowance

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Shares of a day's tokens: what one user may use of all, what one guest may, and what all
// guests together may.
const (
	userShare   = 2
	guestShare  = 10
	guestsShare = 4
)

// A Who is whose message is read; the zero value is no user.
type Who struct {
	User  int64
	Guest bool
}

// A Day is the allowance of each day (UTC), one for all parts of the memory together. It is
// safe for concurrent use.
type Day struct {
	DB     *store.DB
	Clock  core.Clock
	Tokens func() int64 // 0: none
}

// Left returns the tokens that are left today for who, at least 0. For no user that is all
// that is left.
func (d Day) Left(ctx context.Context, who Who) (int64, error) {
	all := d.Tokens()
	if all <= 0 {
		return 0, nil
	}
	var used struct {
		All    int64 `db:"all_of"`
		Own    int64 `db:"own"`
		Guests int64 `db:"guests"`
	}
	if err := d.DB.Get(ctx, &used, `SELECT coalesce(sum(tokens), 0) AS all_of, coalesce(sum(CASE WHEN user_id = $2 THEN tokens ELSE 0 END), 0) AS own,
			coalesce(sum(CASE WHEN guest = 1 THEN tokens ELSE 0 END), 0) AS guests FROM memory_tokens WHERE day = $1`, d.today(), who.User); err != nil {
		return 0, fmt.Errorf("tokens of the memory today: %w", err)
	}
	left := all - used.All
	switch {
	case who.User == 0:
	case who.Guest:
		left = min(left, all/guestShare-used.Own, all/guestsShare-used.Guests)
	default:
		left = min(left, all/userShare-used.Own)
	}
	return max(0, left), nil
}

// Spend notes in tx that tokens were used for who. Counts of earlier days are deleted.
func (d Day) Spend(ctx context.Context, tx *store.Tx, who Who, tokens int64) error {
	if tokens <= 0 {
		return nil
	}
	guest := 0
	if who.Guest {
		guest = 1
	}
	if _, err := tx.Exec(ctx, `DELETE FROM memory_tokens WHERE day < $1`, d.today()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO memory_tokens (day, user_id, guest, tokens) VALUES ($1, $2, $3, $4)
		ON CONFLICT (day, user_id, guest) DO UPDATE SET tokens = memory_tokens.tokens + excluded.tokens`, d.today(), who.User, guest, tokens)
	return err
}

func (d Day) today() string { return d.Clock.Now().UTC().Format(time.DateOnly) }

// Tables is what people leave in the table.
type Tables struct{}

// Tables returns the tables with data of users.
func (Tables) Tables() []string { return []string{"memory_tokens"} }

// Forget makes a user's counts those of no user: the day's total stays.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	return t.Merge(ctx, tx, r.User, 0)
}

// Merge makes one user's counts another's.
func (Tables) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `INSERT INTO memory_tokens (day, user_id, guest, tokens) SELECT day, $2, guest, tokens FROM memory_tokens WHERE user_id = $1
		ON CONFLICT (day, user_id, guest) DO UPDATE SET tokens = memory_tokens.tokens + excluded.tokens`, from, to); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM memory_tokens WHERE user_id = $1`, from)
	return err
}

// Exports returns the statements of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{{Name: "memory_tokens", Query: `SELECT day, guest, tokens FROM memory_tokens WHERE user_id = $1 ORDER BY day DESC, guest LIMIT $2`}}
}
