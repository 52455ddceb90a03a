package usage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

func record(t *testing.T, db *store.DB, l *usage.Ledger, rows ...usage.Row) {
	t.Helper()
	ctx := context.Background()
	err := db.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range rows {
			if err := l.Record(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func micro(n int64) *int64 { return &n }

func TestTotalsPerModelSinceATime(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db, l := storetest.Open(t, clock), usage.New(nil, usage.Budgets{})
	record(t, db, l, usage.Row{Run: "old", Model: "a", Input: 1000})
	clock.Advance(time.Hour)
	since := clock.Now()
	record(t, db, l,
		usage.Row{Run: "r1", Session: "s", User: 5, Bot: "b", Model: "a", Input: 10, Output: 20, CacheRead: 3, CacheWrite: 4, MicroUSD: micro(70)},
		usage.Row{Run: "r1", Model: "a", Input: 1, Output: -5},
		usage.Row{Run: "r2", Model: "b", Output: 2, MicroUSD: micro(0)})
	got, err := l.Totals(context.Background(), db, since)
	want := []usage.Total{
		{Model: "a", Calls: 2, Input: 11, Output: 20, CacheRead: 3, CacheWrite: 4, MicroUSD: 70, Unpriced: 1},
		{Model: "b", Calls: 1, Output: 2},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
	var state string
	if err := db.Get(context.Background(), &state, `SELECT DISTINCT state FROM usage`); err != nil || state != "settled" {
		t.Errorf("state %q, %v", state, err)
	}
}

func TestCountersHaveBoundedLabelsAndStartAtZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := usage.NewMetrics(reg, []string{"a"})
	if n := testutil.CollectAndCount(reg, "gatehouse_tokens_total", "gatehouse_cost_usd_total"); n != 2*4+2 {
		t.Errorf("%d series at the start", n)
	}
	db, l := storetest.Open(t, nil), usage.New(m, usage.Budgets{})
	record(t, db, l,
		usage.Row{Model: "a", Input: 10, Output: 20, MicroUSD: micro(1_500_000)},
		usage.Row{Model: "hostile\n1", Input: 5}, usage.Row{Model: "hostile 2", CacheRead: 6})
	want := `
# HELP gatehouse_cost_usd_total Cost of settled model calls in US dollars, where a price is known.
# TYPE gatehouse_cost_usd_total counter
gatehouse_cost_usd_total{model="a"} 1.5
gatehouse_cost_usd_total{model="other"} 0
# HELP gatehouse_tokens_total Tokens of settled model calls, as the provider counted them.
# TYPE gatehouse_tokens_total counter
gatehouse_tokens_total{direction="cache_read",model="a"} 0
gatehouse_tokens_total{direction="cache_read",model="other"} 6
gatehouse_tokens_total{direction="cache_write",model="a"} 0
gatehouse_tokens_total{direction="cache_write",model="other"} 0
gatehouse_tokens_total{direction="input",model="a"} 10
gatehouse_tokens_total{direction="input",model="other"} 5
gatehouse_tokens_total{direction="output",model="a"} 20
gatehouse_tokens_total{direction="output",model="other"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gatehouse_cost_usd_total", "gatehouse_tokens_total"); err != nil {
		t.Error(err)
	}
}

func TestRolledBackCallIsNotCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	db, l := storetest.Open(t, nil), usage.New(usage.NewMetrics(reg, []string{"a"}), usage.Budgets{})
	ctx, stop := context.Background(), errors.New("stop")
	err := db.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(l.Record(ctx, tx, usage.Row{Model: "a", Input: 10}), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	families, _ := reg.Gather()
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Counter.GetValue() != 0 {
				t.Errorf("%s counts %v", f.GetName(), m)
			}
		}
	}
	if got, _ := l.Totals(ctx, db, time.Time{}); len(got) != 0 {
		t.Errorf("totals: %v", got)
	}
}

func TestForgetKeepsTheFiguresWithoutThePerson(t *testing.T) {
	db, l := storetest.Open(t, nil), usage.New(nil, usage.Budgets{})
	record(t, db, l, usage.Row{Model: "a", User: 5, Session: "s5", Input: 1}, usage.Row{Model: "a", User: 6, Session: "s6", Input: 2})
	ctx := context.Background()
	if err := db.Tx(ctx, func(tx *store.Tx) error { return l.Forget(ctx, tx, 5) }); err != nil {
		t.Fatal(err)
	}
	var users, sessions []string
	_ = db.Select(ctx, &users, `SELECT user_id FROM usage ORDER BY id`)
	_ = db.Select(ctx, &sessions, `SELECT session_id FROM usage ORDER BY id`)
	if !cmp.Equal(users, []string{"0", "6"}) || !cmp.Equal(sessions, []string{"", "s6"}) {
		t.Errorf("users %v, sessions %v", users, sessions)
	}
	if got, _ := l.Totals(ctx, db, time.Time{}); len(got) != 1 || got[0].Input != 3 {
		t.Errorf("totals: %v", got)
	}
	if err := db.Tx(ctx, func(tx *store.Tx) error { return l.Forget(ctx, tx, 0) }); core.KindOf(err) != core.Invalid {
		t.Errorf("forgetting nobody: %v", err)
	}
}
