package usage

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// explained answers as the database does and keeps the plan of what it was asked.
type explained struct {
	*store.DB
	plan string
}

func (e *explained) note(ctx context.Context, query string, args []any) error {
	var steps []struct {
		ID, Parent, Notused int
		Detail              string
	}
	err := e.DB.Select(ctx, &steps, "EXPLAIN QUERY PLAN "+query, args...)
	e.plan = fmt.Sprint(steps)
	return err
}

func (e *explained) Get(ctx context.Context, dest any, query string, args ...any) error {
	if err := e.note(ctx, query, args); err != nil {
		return err
	}
	return e.DB.Get(ctx, dest, query, args...)
}

func (e *explained) Select(ctx context.Context, dest any, query string, args ...any) error {
	if err := e.note(ctx, query, args); err != nil {
		return err
	}
	return e.DB.Select(ctx, dest, query, args...)
}

// Whatever the ledger is asked, it reads the rows that are meant and not all
// ten million: what is asked before each call of a model above all.
func TestTheLedgerIsReadByAnIndexWhateverIsAsked(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	clock := coretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	q := &explained{DB: storetest.Open(t, clock)}
	l, ctx, now, one := New(nil, Budgets{}), t.Context(), clock.Now(), int64(1)
	for name, c := range map[string]struct {
		index string
		ask   func() error
	}{
		"a person's day":     {"COVERING INDEX usage_person (user_id=? AND at>?)", func() error { _, err := usedSince(ctx, q, day().since(now), "user_id = $2", 1); return err }},
		"a person's month":   {"COVERING INDEX usage_person (user_id=? AND at>?)", func() error { _, err := usedSince(ctx, q, month().since(now), "user_id = $2", 1); return err }},
		"a bot's day":        {"usage_bot (bot=? AND at>?)", func() error { _, err := usedSince(ctx, q, day().since(now), "bot = $2", "telegram"); return err }},
		"everybody's":        {"usage_at (at>?)", func() error { _, err := usedSince(ctx, q, day().since(now), "$2 = ''", ""); return err }},
		"one's own":          {"COVERING INDEX usage_person (user_id=? AND at>?)", func() error { _, err := l.Own(ctx, q, 1, now); return err }},
		"the last":           {"usage_person (user_id=?)", func() error { _, err := l.LastOf(ctx, q, []int64{1, 2}); return err }},
		"a run's":            {"usage_run (run=?)", func() error { _, err := l.Spent(ctx, q, "r", "s"); return err }},
		"totals":             {"usage_at (at>?)", func() error { _, err := l.Totals(ctx, q, now); return err }},
		"stale reservations": {"usage_reserved (at<?)", func() error { return q.note(ctx, settleStale, []any{core.Stamp(now)}) }},
		"somebody's rows to forget": {"usage_person (user_id=?)", func() error {
			return q.note(ctx, `SELECT id, run, session_id FROM usage WHERE user_id = $1 LIMIT $2`, []any{1, 500})
		}},
		"a tally": {"usage_at (at>? AND at<?)", func() error { _, err := l.Tally(ctx, q, now, now); return err }},
		"a report": {"usage_at (at>? AND at<?)", func() error {
			_, err := l.Report(ctx, q, ReportQuery{Since: now, Until: now.Add(time.Hour), By: []string{"day"}})
			return err
		}},
		"a person's report": {"COVERING INDEX usage_person (user_id=? AND at>? AND at<?)", func() error {
			_, err := l.Report(ctx, q, ReportQuery{Since: now, Until: now.Add(time.Hour), By: []string{"day", "model"}, User: &one})
			return err
		}},
	} {
		if err := c.ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(q.plan, c.index) || strings.Contains(q.plan, "SCAN usage") {
			t.Errorf("%s is read so: %s", name, q.plan)
		}
	}
}
