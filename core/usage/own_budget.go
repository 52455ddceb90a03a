package usage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// SetBudgets makes these the budgets from the next call on; a person's own
// budget stands before UserDay.
func (l *Ledger) SetBudgets(b Budgets) { l.budgets.Store(&b) }

// Budgets are those that hold for everybody.
func (l *Ledger) Budgets() Budgets { return *l.budgets.Load() }

// ownBudget is a person's own, and whether there is one; the zero Budget is no bound.
func ownBudget(ctx context.Context, q store.Queryer, user int64) (Budget, bool, error) {
	var b struct {
		Tokens int64 `db:"tokens"`
		Micro  int64 `db:"micro_usd"`
	}
	err := q.Get(ctx, &b, `SELECT tokens, micro_usd FROM user_budgets WHERE user_id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return Budget{}, false, nil
	}
	if err != nil {
		return Budget{}, false, fmt.Errorf("budget of a person: %w", err)
	}
	return Budget{b.Tokens, b.Micro}, true, nil
}

// bounds are the budgets as they hold for a person.
func (l *Ledger) bounds(ctx context.Context, q store.Queryer, user int64) (Budgets, error) {
	b := l.Budgets()
	own, there, err := ownBudget(ctx, q, user)
	if there {
		b.UserDay = own
	}
	return b, err
}

// SetOwn gives a person a budget of their own, in place of UserDay, from their
// next call on; the zero Budget is no bound, nil takes their own away.
func (l *Ledger) SetOwn(ctx context.Context, tx *store.Tx, user int64, b *Budget, by core.Actor) error {
	if user <= 0 {
		return core.Errorf(core.Invalid, "no such person")
	}
	said := "as everybody"
	if _, err := tx.Exec(ctx, `DELETE FROM user_budgets WHERE user_id = $1`, user); err != nil {
		return fmt.Errorf("budget of a person: %w", err)
	}
	if b != nil {
		said = b.String()
		if _, err := tx.Exec(ctx, `INSERT INTO user_budgets (user_id, tokens, micro_usd) VALUES ($1, $2, $3)`, user, b.Tokens, b.MicroUSD); err != nil {
			return fmt.Errorf("budget of a person: %w", err)
		}
	}
	return store.Audit(ctx, tx, by, "budget.set", strconv.FormatInt(user, 10), map[string]any{"budget": said})
}

// A Standing is what one person has used, settled and reserved, and may use.
type Standing struct {
	Today, Month Budget // used since midnight and since the first of the month (UTC)
	Budget       Budget // of a day, as it holds for them; zero: no bound
	Own          bool   // it is their own
	General      Budget // what holds for whoever has none of their own
}

// Standing is one person's.
func (l *Ledger) Standing(ctx context.Context, q store.Queryer, user int64, now time.Time) (s Standing, err error) {
	now = now.UTC()
	s.General = l.Budgets().UserDay
	s.Budget = s.General
	own, there, err := ownBudget(ctx, q, user)
	if err != nil {
		return s, err
	}
	if there {
		s.Budget, s.Own = own, true
	}
	if s.Today, err = usedToday(ctx, q, now, "user_id = $2", user); err != nil {
		return s, err
	}
	s.Month, err = usedSince(ctx, q, time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), "user_id = $2", user)
	return s, err
}

// LastOf is when a model was last called for each of these people; for whom it
// never was is not among them. It is one statement, however many they are.
func (l *Ledger) LastOf(ctx context.Context, q store.Queryer, users []int64) (map[int64]time.Time, error) {
	last := make(map[int64]time.Time, len(users))
	if len(users) == 0 {
		return last, nil
	}
	args := make([]any, len(users))
	for i, user := range users {
		args[i] = strconv.FormatInt(user, 10)
	}
	var rows []struct {
		User int64
		At   string
	}
	err := q.Select(ctx, &rows, `WITH who(id) AS (VALUES `+store.Tuples(len(users), 1)+`)
		SELECT CAST(id AS BIGINT) AS "user", coalesce((SELECT max(at) FROM usage WHERE user_id = CAST(who.id AS BIGINT)), '') AS at FROM who`, args...)
	if err != nil {
		return nil, fmt.Errorf("last calls of people: %w", err)
	}
	for _, r := range rows {
		if r.At == "" {
			continue
		}
		if last[r.User], err = core.ParseStamp(r.At); err != nil {
			return nil, fmt.Errorf("last calls of people: %w", err)
		}
	}
	return last, nil
}
