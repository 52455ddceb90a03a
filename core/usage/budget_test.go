package usage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

func TestWithoutABudgetNothingIsReserved(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	l := usage.New(nil, usage.Budgets{})
	id, crossed, err := l.Reserve(t.Context(), db, usage.Row{Run: "r", User: 2, Input: 1 << 40})
	var rows int
	if e := db.Get(t.Context(), &rows, `SELECT count(*) FROM usage`); id != 0 || crossed != nil || err != nil || rows != 0 || e != nil {
		t.Errorf("%d %v %v, %d rows %v", id, crossed, err, rows, e)
	}
}

// Each budget bounds its own: a person's does not touch another's, a bot's not
// another bot's, and the next day everything starts again.
func TestABudgetBoundsItsOwnAndBeginsAgainEachDay(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	reg := prometheus.NewRegistry()
	l := usage.New(usage.NewMetrics(reg, nil), usage.Budgets{UserDay: usage.Budget{Tokens: 1000}, BotDay: usage.Budget{Tokens: 1500}, Day: usage.Budget{MicroUSD: 2_000_000}})
	try := func(user int64, bot string, tokens int64, usd *int64, wantErr, wantNotice string) int64 {
		t.Helper()
		id, crossed, err := l.Reserve(t.Context(), db, usage.Row{Run: "r", User: user, Bot: bot, Model: "m", Input: tokens, MicroUSD: usd})
		notice := ""
		if crossed != nil {
			notice = fmt.Sprint(*crossed)
		}
		if wantErr == "" && err != nil || wantErr != "" && (core.KindOf(err) != core.Busy || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("user %d on %s: %v, want %q", user, bot, err, wantErr)
		}
		if wantNotice == "" && notice != "" || !strings.Contains(notice, wantNotice) {
			t.Errorf("user %d on %s: notice %q, want %q", user, bot, notice, wantNotice)
		}
		return id
	}
	try(2, "a", 700, micro(1), "", "")
	try(2, "a", 200, micro(1), "", "{user false 1000 tokens}")
	try(2, "a", 50, micro(1), "", "") // told once
	try(2, "a", 200, micro(1), "the budget (user, 1000 tokens) is used up", "")
	try(3, "a", 600, micro(1), "the budget (bot, 1500 tokens)", "")
	try(3, "b", 600, micro(1), "", "")
	try(4, "c", 1, nil, "the model has no price", "")
	try(4, "c", 1, micro(2_000_000), "the budget (all, $2.00) is used up", "")
	clock.Advance(12 * time.Hour)
	try(2, "a", 700, micro(1), "", "")
	want := `
		# HELP gatehouse_budget_refusals_total Model calls that a used-up budget has refused.
		# TYPE gatehouse_budget_refusals_total counter
		gatehouse_budget_refusals_total{scope="all"} 2
		gatehouse_budget_refusals_total{scope="bot"} 1
		gatehouse_budget_refusals_total{scope="user"} 1
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gatehouse_budget_refusals_total"); err != nil {
		t.Error(err)
	}
}

// What was reserved counts until it is settled with what was really taken; a
// call that was not made takes nothing; what a crash left is settled by upkeep.
func TestAReservationIsSettledReleasedOrLeftToUpkeep(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	row := usage.Row{Run: "r", User: 2, Bot: "a", Model: "m", Input: 900}
	id, _, err := l.Reserve(t.Context(), db, row)
	if err != nil || id == 0 {
		t.Fatal(id, err)
	}
	if _, _, err := l.Reserve(t.Context(), db, row); core.KindOf(err) != core.Busy {
		t.Fatalf("a reservation does not count: %v", err)
	}
	row.ID, row.Input, row.Output = id, 100, 50
	record(t, db, l, row)
	var got string
	if err := db.Get(t.Context(), &got, `SELECT count(*) || ' ' || sum(input + output) || ' ' || max(state) FROM usage`); err != nil || got != "1 150 settled" {
		t.Errorf("%q %v", got, err)
	}
	row.ID, row.Input, row.Output = 0, 800, 0
	if id, _, err = l.Reserve(t.Context(), db, row); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context(), db, id); err != nil {
		t.Fatal(err)
	}
	if _, _, err = l.Reserve(t.Context(), db, row); err != nil {
		t.Errorf("after a release: %v", err)
	}
	if n, err := l.SettleStale(t.Context(), db); n != 0 || err != nil {
		t.Errorf("a young reservation was settled: %d %v", n, err)
	}
	clock.Advance(26 * time.Hour)
	if n, err := l.SettleStale(t.Context(), db); n != 1 || err != nil {
		t.Errorf("stale reservations: %d %v", n, err)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return l.Forget(context.Background(), tx, 2) }); err != nil {
		t.Error(err)
	}
}

// Calls of one moment do not pass a budget together, a person's, a bot's or
// everybody's: look and reservation are one step.
func TestCallsOfOneMomentDoNotPassABudgetTogether(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	for name, b := range map[string]usage.Budgets{
		"a person's": {UserDay: usage.Budget{Tokens: 1000}}, "a bot's": {BotDay: usage.Budget{Tokens: 1000}}, "everybody's": {Day: usage.Budget{MicroUSD: 1000}},
	} {
		db := storetest.Open(t, clock)
		l := usage.New(nil, b)
		var given, refused atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 40 {
			wg.Go(func() {
				<-start
				switch _, _, err := l.Reserve(t.Context(), db, usage.Row{Run: "r", User: 2, Bot: "a", Model: "m", Input: 300, MicroUSD: micro(300)}); {
				case err == nil:
					given.Add(1)
				case core.KindOf(err) == core.Busy:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		var used int64
		if err := db.Get(t.Context(), &used, `SELECT coalesce(sum(input), 0) FROM usage`); err != nil || given.Load() != 3 || refused.Load() != 37 || used != 900 {
			t.Errorf("%s: %d calls of 300 were let through and %d refused, %d used of 1000, %v", name, given.Load(), refused.Load(), used, err)
		}
	}
}

func TestWhatTheGatewayDoesForNoUserHasTheBudgetOfAll(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 10}, BotDay: usage.Budget{Tokens: 10}, Day: usage.Budget{Tokens: 1000}})
	for tokens, fits := range map[int64]bool{900: true, 1100: false} {
		id, _, err := l.Reserve(t.Context(), db, usage.Row{Model: "m", Input: tokens})
		if (err == nil) != fits {
			t.Errorf("%d tokens: %v", tokens, err)
		}
		if err := l.Release(t.Context(), db, id); err != nil {
			t.Fatal(err)
		}
	}
}

// A search that crosses the mark shows no warning itself.
func TestTheWarningOfACallThatShowsNoneIsTheNextCalls(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	warned := func(user, tokens int64, silent bool) bool {
		t.Helper()
		_, crossed, err := l.Reserve(t.Context(), db, usage.Row{User: user, Model: "m", Input: tokens, Unread: silent})
		if err != nil {
			t.Fatal(err)
		}
		return crossed != nil
	}
	for i, c := range []struct {
		user, tokens int64
		unread, want bool
	}{
		{2, 790, false, false}, {2, 20, true, false}, {2, 1, true, false}, // crosses unread
		{3, 10, false, false},                       // of another user
		{2, 10, false, true}, {2, 10, false, false}, // once
		{3, 800, true, false},
	} {
		if got := warned(c.user, c.tokens, c.unread); got != c.want {
			t.Errorf("call %d of user %d is warned: %t", i, c.user, got)
		}
	}
	clock.Advance(24 * time.Hour)
	if warned(3, 10, false) {
		t.Error("the next day a warning of the day before is shown")
	}
}

func TestCallsInTheBackgroundLeaveHalfOfTheBudgetAndItsWarningToOthers(t *testing.T) {
	for name, b := range map[string]usage.Budget{"tokens": {Tokens: 200_000}, "dollars": {MicroUSD: 200_000}} {
		db := storetest.Open(t, coretest.NewClock(time.Date(2026, 5, 1, 0, 0, 1, 0, time.UTC)))
		l := usage.New(nil, usage.Budgets{Day: b})
		var used int64
		for {
			_, crossed, err := l.Reserve(t.Context(), db, usage.Row{Model: "m", Input: 9_600, MicroUSD: micro(9_600), Background: true})
			if crossed != nil {
				t.Errorf("%s: a call in the background takes the warning", name)
			}
			if err != nil {
				if core.KindOf(err) != core.Busy || !strings.Contains(err.Error(), "half of the budget") {
					t.Error(err)
				}
				break
			}
			used += 9_600
		}
		if used != 96_000 {
			t.Errorf("%s: the background uses %d of 200000", name, used)
		}
		_, crossed, err := l.Reserve(t.Context(), db, usage.Row{User: 1, Model: "m", Input: 70_000, MicroUSD: micro(70_000)})
		if err != nil || crossed == nil {
			t.Errorf("%s: a message that reaches 80 %% gets %v, %v", name, crossed, err)
		}
	}
}

// What a call took beyond its reservation can reach the mark, and then no reservation crosses it.
func TestASettlementThatReachesTheMarkWarnsAtTheNextCall(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 20_000}})
	call := func(user, expected, took int64) bool {
		t.Helper()
		row := usage.Row{User: user, Model: "m", Input: expected}
		id, crossed, err := l.Reserve(t.Context(), db, row)
		if err != nil {
			t.Fatal(err)
		}
		row.ID, row.Input = id, took
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return l.Record(t.Context(), tx, row) }); err != nil {
			t.Fatal(err)
		}
		return crossed != nil
	}
	for i, c := range []struct {
		user, expected, took int64
		warned               bool
	}{
		{2, 3000, 3000, false}, {2, 1500, 14_000, false}, // 85 %
		{3, 100, 100, false},                      // of another user
		{2, 100, 100, true}, {2, 100, 100, false}, // once
	} {
		if got := call(c.user, c.expected, c.took); got != c.warned {
			t.Errorf("call %d of user %d is warned: %t", i, c.user, got)
		}
	}
	clock.Advance(24 * time.Hour)
	if call(2, 100, 17_000) || !call(2, 100, 100) {
		t.Error("the next day is not warned of as the first one")
	}
}

func TestCallsOfOneMomentShowOneWarning(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	var warned atomic.Int64
	var calls sync.WaitGroup
	if _, _, err := l.Reserve(t.Context(), db, usage.Row{User: 2, Model: "m", Input: 790}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		calls.Go(func() {
			_, crossed, err := l.Reserve(t.Context(), db, usage.Row{User: 2, Model: "m", Input: 10})
			if err != nil {
				t.Error(err)
			}
			if crossed != nil {
				warned.Add(1)
			}
		})
	}
	calls.Wait()
	if n := warned.Load(); n != 1 {
		t.Errorf("%d calls are warned", n)
	}
}

func TestACallReservedInPlaceOfAnotherTakesItsRoomOrLeavesIt(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	reserve := func(instead, tokens int64) (int64, error) {
		id, _, err := l.Reserve(t.Context(), db, usage.Row{ID: instead, User: 2, Model: "m", Input: tokens})
		return id, err
	}
	held := func() (ids []int64) {
		if err := db.Select(t.Context(), &ids, `SELECT id FROM usage`); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	first, err := reserve(0, 600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(first, 1001); core.KindOf(err) != core.Busy || !slices.Equal(held(), []int64{first}) {
		t.Errorf("one that does not fit: %v, reserved %d", err, held())
	}
	second, err := reserve(first, 900)
	if err != nil || !slices.Equal(held(), []int64{second}) {
		t.Errorf("one that fits: %v, reserved %d", err, held())
	}
	l.SetBudgets(usage.Budgets{})
	if id, err := reserve(second, 5); err != nil || id != second {
		t.Errorf("once there is no budget any more: %d, %v", id, err)
	}
}
