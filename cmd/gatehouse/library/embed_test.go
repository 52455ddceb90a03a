package library

import (
	"context"
	"errors"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/embed"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

func TestACallWhoseAnswerDidNotComeInTimeCountsAsEstimated(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	ledger := usage.New(nil, usage.Budgets{Day: usage.Budget{Tokens: 1000}})
	spend := Embed{Ledger: func() *usage.Ledger { return ledger }, Cost: func(string, core.Tokens) (int64, bool) { return 0, false }}.spend(db)
	counted := func() (n int64) {
		if err := db.Get(t.Context(), &n, `SELECT coalesce(sum(input), 0) FROM usage WHERE state = 'settled'`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	down := &embed.Fault{Text: "the server does not answer", Again: true}
	if err := spend(t.Context(), 7, 10, func() (int64, error) { return 0, down }); !errors.Is(err, down) || counted() != 0 {
		t.Errorf("a call that was not made: %v, %d tokens", err, counted())
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := spend(ctx, 7, 10, func() (int64, error) { cancel(); return 0, ctx.Err() }); err == nil || counted() != 10 {
		t.Errorf("a search that was not waited for: %v, %d tokens", err, counted())
	}
	if err := spend(t.Context(), 0, 20, func() (int64, error) { return 0, &embed.Fault{Text: "timeout", Late: true} }); err == nil || counted() != 30 {
		t.Errorf("a batch that took too long: %v, %d tokens", err, counted())
	}
	if err := spend(t.Context(), 7, 5, func() (int64, error) { return 3, nil }); err != nil || counted() != 33 {
		t.Errorf("a call: %v, %d tokens", err, counted())
	}
	if err := spend(t.Context(), 0, 500, func() (int64, error) { return 500, nil }); core.KindOf(err) != core.Busy {
		t.Errorf("what is embedded in the background uses over half of the budget: %v", err)
	}
}

// A search shows no warning: the message that it is for does.
func TestASearchLeavesTheWarningOfTheBudgetToTheNextMessage(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	ledger := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	spend := Embed{Ledger: func() *usage.Ledger { return ledger }, Cost: func(string, core.Tokens) (int64, bool) { return 0, false }}.spend(db)
	if err := spend(t.Context(), 7, 850, func() (int64, error) { return 850, nil }); err != nil {
		t.Fatal(err)
	}
	if _, crossed, err := ledger.Reserve(t.Context(), db, usage.Row{User: 7, Model: "m", Input: 10}); err != nil || crossed == nil {
		t.Errorf("the next message is not warned: %v", err)
	}
}
