package usage

import (
	"context"
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

// An Own is what one person may use by a word of the operator's: in a day,
// instead of UserDay (nil: as everybody; the zero Budget: no bound), and in a
// calendar month (the zero Budget: no bound).
type Own struct {
	Day   *Budget
	Month Budget
}

func (o Own) String() string {
	day := "as everybody"
	if o.Day != nil {
		day = o.Day.String()
	}
	if !o.Month.stands() {
		return day
	}
	return day + ", in a month " + o.Month.String()
}

// own is what was set for a person.
func own(ctx context.Context, q store.Queryer, user int64) (o Own, err error) {
	var rows []struct {
		Period string `db:"period"`
		Tokens int64  `db:"tokens"`
		Micro  int64  `db:"micro_usd"`
	}
	err = q.Select(ctx, &rows, `SELECT period, tokens, micro_usd FROM budgets WHERE scope = 'user' AND id = $1`, strconv.FormatInt(user, 10))
	if err != nil {
		return o, fmt.Errorf("budget of a person: %w", err)
	}
	for _, r := range rows {
		switch b := (Budget{r.Tokens, r.Micro}); r.Period {
		case "day":
			o.Day = &b
		case "month":
			o.Month = b
		}
	}
	return o, nil
}

// bounds are the budgets as they hold for a person.
func (l *Ledger) bounds(ctx context.Context, q store.Queryer, user int64) (Budgets, error) {
	b := l.Budgets()
	o, err := own(ctx, q, user)
	if o.Day != nil {
		b.UserDay = *o.Day
	}
	b.UserMonth = o.Month
	return b, err
}

// SetOwn gives a person budgets of their own from their next call on, in place
// of those they had.
func (l *Ledger) SetOwn(ctx context.Context, tx *store.Tx, user int64, o Own, by core.Actor) error {
	if user <= 0 {
		return core.Errorf(core.Invalid, "no such person")
	}
	id := strconv.FormatInt(user, 10)
	if _, err := tx.Exec(ctx, `DELETE FROM budgets WHERE scope = 'user' AND id = $1`, id); err != nil {
		return fmt.Errorf("budget of a person: %w", err)
	}
	set := map[string]*Budget{"day": o.Day}
	if o.Month.stands() {
		set["month"] = &o.Month
	}
	for period, b := range set {
		if b == nil {
			continue
		}
		if _, err := tx.Exec(ctx, `INSERT INTO budgets (scope, id, period, tokens, micro_usd) VALUES ('user', $1, $2, $3, $4)`, id, period, b.Tokens, b.MicroUSD); err != nil {
			return fmt.Errorf("budget of a person: %w", err)
		}
	}
	return store.Audit(ctx, tx, by, "budget.set", id, map[string]any{"budget": o.String()})
}

// A Standing is what one person has used, settled and reserved, and may use.
type Standing struct {
	Today, Month Budget // used since midnight and since the first of the month (UTC)
	Budget       Budget // of a day, as it holds for them; zero: no bound
	Own          bool   // it is their own
	General      Budget // what holds for whoever has none of their own
	MonthBudget  Budget // of a month, their own; zero: no bound
}

// Standing is one person's.
func (l *Ledger) Standing(ctx context.Context, q store.Queryer, user int64, now time.Time) (s Standing, err error) {
	s.General = l.Budgets().UserDay
	s.Budget = s.General
	o, err := own(ctx, q, user)
	if err != nil {
		return s, err
	}
	if s.MonthBudget = o.Month; o.Day != nil {
		s.Budget, s.Own = *o.Day, true
	}
	if s.Today, err = usedSince(ctx, q, day().since(now), "user_id = $2", user); err != nil {
		return s, err
	}
	s.Month, err = usedSince(ctx, q, month().since(now), "user_id = $2", user)
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
