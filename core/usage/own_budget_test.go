package usage_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

func TestABudgetOfOnesOwnOverridesEveryones(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 100}})
	by := core.Actor{User: core.Operator, Via: "panel"}
	tx := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	own := func(user int64, b *usage.Budget) {
		t.Helper()
		tx(func(tx *store.Tx) error { return l.SetOwn(t.Context(), tx, user, usage.Own{Day: b}, by) })
	}
	takes := func(user, tokens int64) bool {
		t.Helper()
		id, _, err := l.Reserve(t.Context(), db, usage.Row{Run: "r", User: user, Bot: "a", Input: tokens})
		if err != nil && core.KindOf(err) != core.Busy {
			t.Fatal(err)
		}
		_ = id
		return err == nil
	}
	if takes(2, 101) || !takes(3, 100) {
		t.Fatal("everybody's budget does not hold")
	}
	own(2, &usage.Budget{Tokens: 500})
	if !takes(2, 400) || takes(2, 200) {
		t.Error("a larger one of their own does not hold")
	}
	own(2, &usage.Budget{})
	if !takes(2, 1_000_000) {
		t.Error("no bound of their own still bounds")
	}
	own(3, &usage.Budget{Tokens: 10})
	if takes(3, 1) {
		t.Error("a smaller one of their own does not hold")
	}
	own(3, nil)
	s, err := l.Standing(t.Context(), db, 3, clock.Now())
	if err != nil || s.Own || s.Budget.Tokens != 100 || s.Today.Tokens != 100 {
		t.Errorf("standing %+v, %v", s, err)
	}
	clock.Advance(24 * time.Hour) // another day, and another month
	if s, err = l.Standing(t.Context(), db, 2, clock.Now()); err != nil || !s.Own || s.Budget != (usage.Budget{}) || s.Today.Tokens != 0 || s.Month.Tokens != 0 {
		t.Errorf("the next month: %+v, %v", s, err)
	}
	own(2, &usage.Budget{Tokens: 5})
	// A second account does not get anybody rid of it.
	tx(func(tx *store.Tx) error { return l.Give(t.Context(), tx, 2, 4) })
	if takes(4, 6) {
		t.Error("the budget is gone with the account")
	}
	tx(func(tx *store.Tx) error { return l.Forget(t.Context(), tx, 4) })
	if !takes(4, 50) {
		t.Error("the budget of somebody forgotten still holds")
	}
	l.SetBudgets(usage.Budgets{UserDay: usage.Budget{Tokens: 60}})
	if takes(4, 50) {
		t.Error("another budget for everybody does not hold at once")
	}
}

// A budget of a month stands beside the day's, is told in its own words, begins
// anew with the month, and goes with the person.
func TestABudgetOfAMonthStandsNextToTheDays(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 30, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 10000}})
	own := func(user int64, o usage.Own) {
		t.Helper()
		err := db.Tx(t.Context(), func(tx *store.Tx) error {
			return l.SetOwn(t.Context(), tx, user, o, core.Actor{User: core.Operator, Via: "panel"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	takes := func(user, tokens int64) (crossed, refused usage.Limit) {
		t.Helper()
		_, at, err := l.Reserve(t.Context(), db, usage.Row{Run: "r", User: user, Bot: "a", Input: tokens})
		if at != nil {
			crossed = *at
		}
		var r *usage.Refusal
		if errors.As(err, &r) && core.KindOf(err) == core.Busy {
			refused = r.Limit
		} else if err != nil {
			t.Fatal(err)
		}
		return crossed, refused
	}
	none := usage.Limit{}
	own(2, usage.Own{Month: usage.Budget{Tokens: 15000}})
	if _, why := takes(2, 9000); why != none {
		t.Fatal(why)
	}
	if _, why := takes(2, 2000); why != (usage.Limit{Whose: usage.OfUser, Budget: usage.Budget{Tokens: 10000}}) {
		t.Errorf("the day's: %+v", why)
	}
	clock.Advance(24 * time.Hour)
	if notice, why := takes(2, 4000); why != none || notice != (usage.Limit{Whose: usage.OfUser, Month: true, Budget: usage.Budget{Tokens: 15000}}) {
		t.Errorf("the next day: %+v, %+v", notice, why)
	}
	if _, why := takes(2, 4000); why != (usage.Limit{Whose: usage.OfUser, Month: true, Budget: usage.Budget{Tokens: 15000}}) {
		t.Errorf("the month's: %+v", why)
	}
	if _, why := takes(3, 10000); why != none {
		t.Errorf("another person's: %+v", why)
	}
	left, err := l.Left(t.Context(), db, 2, "a", clock.Now())
	if err != nil || len(left) != 2 || left[1] != (usage.Left{Whose: usage.OfUser, Month: true, Budget: usage.Budget{Tokens: 15000}, Left: usage.Budget{Tokens: 2000}}) {
		t.Errorf("left: %+v, %v", left, err)
	}
	// A second account does not get anybody rid of it, and keeps its own day's.
	own(4, usage.Own{Day: &usage.Budget{Tokens: 50000}})
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return l.Give(t.Context(), tx, 2, 4) }); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Standing(t.Context(), db, 4, clock.Now()); err != nil || s.MonthBudget.Tokens != 15000 || s.Budget.Tokens != 50000 || s.Month.Tokens != 13000 {
		t.Errorf("given: %+v, %v", s, err)
	}
	clock.Advance(24 * time.Hour) // June
	if _, why := takes(4, 10000); why != none {
		t.Errorf("the next month: %+v", why)
	}
	own(4, usage.Own{})
	if _, why := takes(4, 6000); why == none {
		t.Error("what is taken back still stands before everybody's day")
	}
}
