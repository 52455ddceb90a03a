package usage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// SetBudgets sets the budgets from the next call on. A user's own budget
// overrides UserDay.
func (l *Ledger) SetBudgets(b Budgets) { l.budgets.Store(&b) }

// Budgets returns the budgets that apply to all users.
func (l *Ledger) Budgets() Budgets { return *l.budgets.Load() }

// An Own is the budget that the operator set for one user: for a day, in place of
// UserDay (nil: UserDay applies; the zero Budget: no limit), and for a calendar
// month (the zero Budget: no limit).
type Own struct {
	Day   *Budget
	Month Budget
}

func (o Own) String() string {
	day := "as everybody"
	if o.Day != nil {
		day = o.Day.String()
	}
	if !o.Month.isSet() {
		return day
	}
	return day + ", in a month " + o.Month.String()
}

// own returns what was set for a user.
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

// bounds returns the budgets that apply to a user.
func (l *Ledger) bounds(ctx context.Context, q store.Queryer, user int64) (Budgets, error) {
	b := l.Budgets()
	o, err := own(ctx, q, user)
	if o.Day != nil {
		b.UserDay = *o.Day
	}
	b.UserMonth = o.Month
	return b, err
}

// SetOwn replaces a user's own budgets from their next call on.
func (l *Ledger) SetOwn(ctx context.Context, tx *store.Tx, user int64, o Own, by core.Actor) error {
	if user <= 0 {
		return core.Errorf(core.Invalid, "no such person")
	}
	id := strconv.FormatInt(user, 10)
	if _, err := tx.Exec(ctx, `DELETE FROM budgets WHERE scope = 'user' AND id = $1`, id); err != nil {
		return fmt.Errorf("budget of a person: %w", err)
	}
	set := map[string]*Budget{"day": o.Day}
	if o.Month.isSet() {
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

// A Standing is what one user has used, settled and reserved, and may use.
type Standing struct {
	Today, Month Budget // used since midnight and since the first of the month (UTC)
	Budget       Budget // of a day, as it applies to them; zero: no bound
	Own          bool   // it is their own
	General      Budget // what applies to users without their own
	MonthBudget  Budget // of a month, their own; zero: no bound
}

// Standing returns what one user has used and may use.
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

// LastOf returns when a model was last called for each of these users, without
// those for which it never was, in one statement.
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
