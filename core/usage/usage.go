// Package usage is the ledger of model calls: who used how much of which
// model, and what it cost where a price is known.
package usage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Row is one model call, as the provider counted it. Aborted and failed
// runs are recorded too.
type Row struct {
	ID           int64 // of the reservation that this settles; 0: none
	Run, Session string
	User         int64
	Bot          string
	Model        string
	Input        int64 // tokens, without those from the cache
	Output       int64
	CacheRead    int64
	CacheWrite   int64
	MicroUSD     *int64 // millionths of a dollar; nil where no price is known
	Background   bool   // no one waits for it: Reserve leaves half of a budget to others; it is not stored
	Unread       bool   // no one is shown a warning of it: the user's next call returns that; it is not stored
}

// SetCost sets the row's price for u tokens of its model, as cost returns it.
func (r *Row) SetCost(cost func(model string, u core.Tokens) (int64, bool), u core.Tokens) {
	r.MicroUSD = nil
	if usd, ok := cost(r.Model, u); ok {
		r.MicroUSD = &usd
	}
}

// A Ledger records rows and counts them. It is safe for concurrent use.
type Ledger struct {
	metrics *Metrics
	budgets atomic.Pointer[Budgets]

	mu     sync.Mutex
	unread map[int64]unread      // by user
	warned map[warning]time.Time // the day or month in which WarnAt was reached; at most maxWarned
}

// New returns a Ledger; without metrics nothing is counted.
func New(m *Metrics, b Budgets) *Ledger {
	if m == nil {
		m = NewMetrics(nil, nil)
	}
	l := &Ledger{metrics: m, unread: map[int64]unread{}, warned: map[warning]time.Time{}}
	l.SetBudgets(b)
	return l
}

// Know adds models that the metrics count by name.
func (l *Ledger) Know(models []string) { l.metrics.Know(models) }

// Record writes one settled row in the caller's transaction; the counters move
// when it has committed. Counts below zero are taken as zero.
func (l *Ledger) Record(ctx context.Context, tx *store.Tx, r Row) error {
	for _, n := range [...]*int64{&r.Input, &r.Output, &r.CacheRead, &r.CacheWrite} {
		*n = max(0, *n)
	}
	if r.ID != 0 {
		n, err := tx.Exec(ctx, `UPDATE usage SET at = $1, model = $2, input = $3, output = $4, cache_read = $5, cache_write = $6, micro_usd = $7, state = 'settled' WHERE id = $8`,
			core.Stamp(tx.Time()), r.Model, r.Input, r.Output, r.CacheRead, r.CacheWrite, r.MicroUSD, r.ID)
		if err != nil {
			return fmt.Errorf("settle usage: %w", err)
		}
		if n > 0 {
			tx.OnCommit(func() { l.metrics.count(r) })
			return nil
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, cache_read, cache_write, micro_usd, state)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'settled')`,
		core.Stamp(tx.Time()), r.Run, r.Session, r.User, r.Bot, r.Model, r.Input, r.Output, r.CacheRead, r.CacheWrite, r.MicroUSD)
	if err != nil {
		return fmt.Errorf("record usage: %w", err)
	}
	tx.OnCommit(func() { l.metrics.count(r) })
	return nil
}

// A Total is what one model took.
type Total struct {
	Model      string `db:"model" json:"model"`
	Calls      int64  `db:"calls" json:"calls"`
	Input      int64  `db:"input" json:"input_tokens"`
	Output     int64  `db:"output" json:"output_tokens"`
	CacheRead  int64  `db:"cache_read" json:"cache_read_tokens"`
	CacheWrite int64  `db:"cache_write" json:"cache_write_tokens"`
	MicroUSD   int64  `db:"micro_usd" json:"micro_usd"`
	Unpriced   int64  `db:"unpriced" json:"unpriced"` // calls without a known price, not in MicroUSD
}

// Totals returns the sums of the settled calls since a time, one row per model, by name.
func (l *Ledger) Totals(ctx context.Context, q store.Queryer, since time.Time) ([]Total, error) {
	var all []Total
	err := q.Select(ctx, &all, `SELECT model, count(*) AS calls, sum(input) AS input, sum(output) AS output,
			sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
			coalesce(sum(micro_usd), 0) AS micro_usd, sum(CASE WHEN micro_usd IS NULL THEN 1 ELSE 0 END) AS unpriced
		FROM usage WHERE at >= $1 AND state = 'settled' GROUP BY model ORDER BY model`, core.Stamp(since))
	if err != nil {
		return nil, fmt.Errorf("usage totals: %w", err)
	}
	return all, nil
}

// ForgetSome removes the user from up to most rows of the ledger and returns the
// runs of these rows, by session; more reports whether there may be further rows.
// Sums stay. Forget must still be called.
func (l *Ledger) ForgetSome(ctx context.Context, tx *store.Tx, user int64, most int) (runs map[string][]string, more bool, err error) {
	if user <= 0 {
		return nil, false, core.Errorf(core.Invalid, "no such person")
	}
	var rows []struct {
		ID      int64  `db:"id"`
		Run     string `db:"run"`
		Session string `db:"session_id"`
	}
	if err := tx.Select(ctx, &rows, `SELECT id, run, session_id FROM usage WHERE user_id = $1 LIMIT $2`, user, most); err != nil {
		return nil, false, fmt.Errorf("forget usage: %w", err)
	}
	runs = map[string][]string{}
	for _, r := range rows {
		if _, err := tx.Exec(ctx, `UPDATE usage SET user_id = 0, session_id = '' WHERE id = $1`, r.ID); err != nil {
			return nil, false, fmt.Errorf("forget usage: %w", err)
		}
		if r.Session != "" && r.Run != "" && !slices.Contains(runs[r.Session], r.Run) {
			runs[r.Session] = append(runs[r.Session], r.Run)
		}
	}
	return runs, len(rows) == most, nil
}

// Forget removes a user from the ledger, with their budget. Sums stay.
func (l *Ledger) Forget(ctx context.Context, tx *store.Tx, user int64) error {
	if user <= 0 {
		return core.Errorf(core.Invalid, "no such person")
	}
	_, err := tx.Exec(ctx, `UPDATE usage SET user_id = 0, session_id = '' WHERE user_id = $1`, user)
	if err != nil {
		return fmt.Errorf("forget usage: %w", err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM rollups WHERE series = $1 OR series = $2`, fmt.Sprintf("user_tokens|%d", user), fmt.Sprintf("user_usd|%d", user)); err != nil {
		return fmt.Errorf("forget rollups: %w", err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM budgets WHERE scope = 'user' AND id = $1`, strconv.FormatInt(user, 10)); err != nil {
		return fmt.Errorf("forget budget: %w", err)
	}
	return nil
}
