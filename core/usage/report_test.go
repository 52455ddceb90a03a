package usage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestAReportSumsWhatWasUsedByDayModelPersonAndBot(t *testing.T) {
	ctx := context.Background()
	clock := coretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := New(nil, Budgets{})
	price := func(n int64) *int64 { return &n }
	use := func(user int64, bot, model string, in int64, micro *int64) {
		t.Helper()
		if err := db.Tx(ctx, func(tx *store.Tx) error {
			return l.Record(ctx, tx, Row{Run: "r", Session: "s", User: user, Bot: bot, Model: model, Input: in, Output: 1, CacheRead: 2, CacheWrite: 3, MicroUSD: micro})
		}); err != nil {
			t.Fatal(err)
		}
	}
	begin := clock.Now()
	use(1, "telegram", "a", 10, price(5))
	use(2, "telegram", "b", 20, nil)
	clock.Advance(24 * time.Hour)
	use(1, "discord", "a", 40, price(7))
	clock.Advance(time.Hour)
	one := int64(1)
	report := func(q ReportQuery) string {
		t.Helper()
		if q.Since.IsZero() {
			q.Since = begin
		}
		if q.Until.IsZero() {
			q.Until = clock.Now()
		}
		rows, err := l.Report(ctx, db, q)
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, r := range rows {
			user := int64(-1)
			if r.User != nil {
				user = *r.User
			}
			s += fmt.Sprintf("[%s %s %d %s: %d %d %d %d %d $%d %d]", r.Day, r.Model, user, r.Bot, r.Calls, r.Input, r.Output, r.CacheRead, r.CacheWrite, r.MicroUSD, r.Unpriced)
		}
		return s
	}
	for _, c := range []struct {
		q    ReportQuery
		want string
	}{
		{ReportQuery{By: []string{"day"}}, "[2026-03-01  -1 : 2 30 2 4 6 $5 1][2026-03-02  -1 : 1 40 1 2 3 $7 0]"},
		{ReportQuery{By: []string{"model"}}, "[ a -1 : 2 50 2 4 6 $12 0][ b -1 : 1 20 1 2 3 $0 1]"},
		{ReportQuery{By: []string{"user"}}, "[  1 : 2 50 2 4 6 $12 0][  2 : 1 20 1 2 3 $0 1]"},
		{ReportQuery{By: []string{"bot", "day"}, User: &one}, "[2026-03-02  -1 discord: 1 40 1 2 3 $7 0][2026-03-01  -1 telegram: 1 10 1 2 3 $5 0]"},
		{ReportQuery{By: []string{"day"}, Until: begin.Add(time.Hour)}, "[2026-03-01  -1 : 2 30 2 4 6 $5 1]"},
		{ReportQuery{By: []string{"day"}, Since: clock.Now().Add(-time.Minute)}, ""},
	} {
		if got := report(c.q); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.q, got, c.want)
		}
	}
	for _, bad := range []ReportQuery{
		{Since: begin, Until: clock.Now()}, {By: []string{"name"}, Since: begin, Until: clock.Now()}, {By: []string{"day", "day"}, Since: begin, Until: clock.Now()},
		{By: []string{"day"}, Since: clock.Now(), Until: begin}, {By: []string{"day"}, Since: begin.AddDate(-2, 0, 0), Until: begin},
	} {
		if _, err := l.Report(ctx, db, bad); core.KindOf(err) != core.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
