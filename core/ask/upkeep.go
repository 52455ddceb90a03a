package ask

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Move rewrites a chat's id in the asks that wait.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, oldChat, newChat string) error {
	_, err := tx.Exec(ctx, `UPDATE asks SET chat = $1 WHERE bot = $2 AND chat = $3 AND state = 'open'`, newChat, bot, oldChat)
	return err
}

// Give makes another user's what one was asked and what was asked for them: two
// accounts of one user were linked.
func (s *Store) Give(ctx context.Context, tx *store.Tx, from, to int64) error {
	for _, q := range [...]string{`UPDATE asks SET user_id = $1 WHERE user_id = $2`, `UPDATE asks SET asker = $1 WHERE asker = $2`} {
		if _, err := tx.Exec(ctx, q, to, from); err != nil {
			return fmt.Errorf("give asks: %w", err)
		}
	}
	return nil
}

// ForgetSome removes at most most of what a user was asked and of what was asked
// for them, and reports which asks these were. Forget is still to be called.
func (s *Store) ForgetSome(ctx context.Context, tx *store.Tx, user int64, most int) (asks []string, err error) {
	if user == 0 {
		return nil, nil
	}
	if err := tx.Select(ctx, &asks, `SELECT id FROM asks WHERE user_id = $1 OR asker = $1 LIMIT $2`, user, most); err != nil {
		return nil, err
	}
	return asks, deleteAsks(ctx, tx, asks)
}

func deleteAsks(ctx context.Context, tx *store.Tx, asks []string) error {
	for _, id := range asks {
		if _, err := tx.Exec(ctx, `DELETE FROM asks WHERE id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes what a user was asked and what was asked for them, also about
// letting them in (by the ids of their requests), and reports which asks these were.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, user int64, requests ...string) (asks []string, err error) {
	if user != 0 {
		if err := tx.Select(ctx, &asks, `SELECT id FROM asks WHERE user_id = $1 OR asker = $1`, user); err != nil {
			return nil, err
		}
	}
	for _, r := range requests {
		var about []string
		if err := tx.Select(ctx, &about, `SELECT id FROM asks WHERE kind = $1 AND run = $2`, KindPairing, r); err != nil {
			return nil, err
		}
		asks = append(asks, about...)
	}
	return asks, deleteAsks(ctx, tx, asks)
}

// keepSettled is how long the panel may show what was decided.
const keepSettled = 30 * 24 * time.Hour

// Prune deletes asks that were settled more than 30 days ago, at most 1000 at
// a time, and returns how many. The audit log keeps who decided what.
func (s *Store) Prune(ctx context.Context) (n int, err error) {
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		deleted, err := tx.Exec(ctx, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE state <> 'open' AND created_at < $1 ORDER BY created_at LIMIT 1000)`,
			core.Stamp(tx.Time().Add(-keepSettled)))
		n = int(deleted)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("prune asks: %w", err)
	}
	return n, nil
}

// Gauges returns the collector of gatehouse_asks_open, which asks the table at
// scrape time.
func (s *Store) Gauges() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_asks_open", Help: "Questions that wait for a person."}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var n int
		if err := s.db.Get(ctx, &n, `SELECT count(*) FROM asks WHERE state = 'open' AND (expires_at = '' OR expires_at > $1)`, core.Stamp(s.clock.Now())); err != nil {
			return -1 // shown, unlike a 0 that would look well
		}
		return float64(n)
	})
}

// CloseOf settles the open asks of this kind that are gone, oldest first, and returns them as
// they are now.
func (s *Store) CloseOf(ctx context.Context, tx *store.Tx, kind, decision string, gone func(Ask) (bool, error)) ([]Ask, error) {
	var rows, closed []row
	if err := tx.Select(ctx, &rows, askColumns+` WHERE kind = $1 AND state = 'open' ORDER BY created_at, id`, kind); err != nil {
		return nil, fmt.Errorf("close asks: %w", err)
	}
	for _, r := range rows {
		if is, err := gone(r.ask()); err != nil {
			return nil, err
		} else if is {
			closed = append(closed, r)
		}
	}
	return s.settle(ctx, tx, closed, Closed, decision)
}
