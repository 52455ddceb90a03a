package usage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Own returns the sums of one user's settled calls since a time, one row per model, by
// name.
func (l *Ledger) Own(ctx context.Context, q store.Queryer, user int64, since time.Time) ([]Total, error) {
	var all []Total
	err := q.Select(ctx, &all, `SELECT model, count(*) AS calls, sum(input) AS input, sum(output) AS output,
			sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
			coalesce(sum(micro_usd), 0) AS micro_usd, sum(CASE WHEN micro_usd IS NULL THEN 1 ELSE 0 END) AS unpriced
		FROM usage WHERE user_id = $1 AND at >= $2 AND state = 'settled' GROUP BY model ORDER BY model`, user, core.Stamp(since))
	if err != nil {
		return nil, fmt.Errorf("usage of a person: %w", err)
	}
	return all, nil
}

// A Left is what is left of a budget.
type Left struct {
	Whose  string // OfUser, or "bot" or "all"
	Month  bool   // of a calendar month; else of a day
	Budget Budget
	Left   Budget // of the same unit; never below zero
}

// Left returns what is left of the budgets that limit a user's calls through a
// bot, the user's own first. Reservations count as used.
func (l *Ledger) Left(ctx context.Context, q store.Queryer, user int64, bot string, now time.Time) ([]Left, error) {
	bounds, err := l.bounds(ctx, q, user)
	if err != nil {
		return nil, err
	}
	var out []Left
	for _, b := range bounds.bounding(user, bot) {
		used, err := usedSince(ctx, q, b.period.since(now), b.where, b.arg)
		if err != nil {
			return nil, err
		}
		left := Budget{Tokens: max(0, b.budget.Tokens-used.Tokens)}
		if b.budget.MicroUSD > 0 {
			left = Budget{MicroUSD: max(0, b.budget.MicroUSD-used.MicroUSD)}
		}
		out = append(out, Left{b.whose, b.period.month, b.budget, left})
	}
	return out, nil
}

func usedSince(ctx context.Context, q store.Queryer, since time.Time, where string, arg any) (Budget, error) {
	var used struct {
		Tokens int64 `db:"tokens"`
		Micro  int64 `db:"micro"`
	}
	err := q.Get(ctx, &used, `SELECT coalesce(sum(input + output + cache_read + cache_write), 0) AS tokens, coalesce(sum(micro_usd), 0) AS micro
		FROM usage WHERE at >= $1 AND `+where, core.Stamp(since), arg)
	if err != nil {
		return Budget{}, fmt.Errorf("usage since a day: %w", err)
	}
	return Budget{used.Tokens, used.Micro}, nil
}

// Give makes the rows of one user another's.
func (l *Ledger) Give(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `UPDATE usage SET user_id = $1 WHERE user_id = $2`, to, from); err != nil {
		return fmt.Errorf("give usage: %w", err)
	}
	// A user's own budget stays: linking a second account does not remove it.
	for _, q := range []string{
		`UPDATE budgets SET id = $1 WHERE scope = 'user' AND id = $2 AND NOT EXISTS (SELECT 1 FROM budgets o WHERE o.scope = 'user' AND o.id = $1 AND o.period = budgets.period)`,
		`DELETE FROM budgets WHERE scope = 'user' AND id = $2 AND $1 <> $2`,
	} {
		if _, err := tx.Exec(ctx, q, strconv.FormatInt(to, 10), strconv.FormatInt(from, 10)); err != nil {
			return fmt.Errorf("give usage: %w", err)
		}
	}
	return nil
}
