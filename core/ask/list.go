package ask

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// row is a row of asks.
type row struct {
	ID        string `db:"id"`
	Kind      string `db:"kind"`
	Run       string `db:"run"`
	Bot       string `db:"bot"`
	Chat      string `db:"chat"`
	User      int64  `db:"user_id"`
	Asker     int64  `db:"asker"`
	Payload   string `db:"payload"`
	State     string `db:"state"`
	Decision  string `db:"decision"`
	DecidedBy string `db:"decided_by"`
	DecidedAt string `db:"decided_at"`
	CreatedAt string `db:"created_at"`
	ExpiresAt string `db:"expires_at"`
}

const askColumns = `SELECT id, kind, run, bot, chat, user_id, asker, payload, state, decision, decided_by, decided_at, created_at, expires_at FROM asks`

func (r *row) ask() Ask {
	return Ask{ID: r.ID, Kind: r.Kind, Run: r.Run, Bot: r.Bot, Chat: r.Chat, User: r.User, Asker: r.Asker, Payload: r.Payload, State: r.State,
		Decision: r.Decision, DecidedBy: r.DecidedBy, DecidedAt: core.TimeOf(r.DecidedAt), CreatedAt: core.TimeOf(r.CreatedAt), ExpiresAt: core.TimeOf(r.ExpiresAt)}
}

// Outcome returns what became of a permission: "granted", "denied", "timeout", or
// "withdrawn" when its run ended before an answer; "" while it waits.
func (a Ask) Outcome() string {
	switch {
	case a.State == Open:
		return ""
	case a.State == Expired:
		return Timeout
	case a.State == Closed:
		return "withdrawn"
	case a.Decision == Granted:
		return Granted
	}
	return Denied
}

// list returns the asks of a query that ends with the limit's argument.
func (s *Store) list(ctx context.Context, where string, args ...any) ([]Ask, error) {
	var rows []row
	if err := s.db.Select(ctx, &rows, askColumns+where, args...); err != nil {
		return nil, fmt.Errorf("list asks: %w", err)
	}
	out := make([]Ask, len(rows))
	for i := range rows {
		out[i] = rows[i].ask()
	}
	return out, nil
}

// Pending returns the open asks of tool calls, oldest first, at most limit.
func (s *Store) Pending(ctx context.Context, limit int) ([]Ask, error) {
	return s.list(ctx, ` WHERE state = 'open' AND kind = 'permission' AND (expires_at = '' OR expires_at > $1)
		ORDER BY created_at, id LIMIT $2`, core.Stamp(s.clock.Now()), max(0, min(limit, maxOpen)))
}

// Recent returns the asks of tool calls that were settled within the last day,
// newest first, at most limit.
func (s *Store) Recent(ctx context.Context, limit int) ([]Ask, error) {
	return s.list(ctx, ` WHERE kind = 'permission' AND state <> 'open' AND decided_at > $1
		ORDER BY decided_at DESC, id LIMIT $2`, core.Stamp(s.clock.Now().Add(-24*time.Hour)), max(0, min(limit, maxOpen)))
}

// Questions returns the questions that wait for a user's answer, oldest first.
func (s *Store) Questions(ctx context.Context, user int64) ([]Ask, error) {
	return s.list(ctx, ` WHERE state = 'open' AND kind = 'question' AND user_id = $1 AND (expires_at = '' OR expires_at > $2)
		ORDER BY created_at, id LIMIT $3`, user, core.Stamp(s.clock.Now()), maxOpen)
}

// OfRun returns the asks of a run's tool calls since a time, at most 1,000.
func (s *Store) OfRun(ctx context.Context, run string, since time.Time) ([]Ask, error) {
	return s.list(ctx, ` WHERE run = $1 AND kind = 'permission' AND created_at >= $2 LIMIT 1000`, run, core.Stamp(since))
}

// Asked returns how many asks of a user's tools and models are open, and how
// many there were in the last 24 hours.
func (s *Store) Asked(ctx context.Context, tx *store.Tx, user int64) (open, today int, err error) {
	var n struct {
		Open  int `db:"waiting"`
		Today int `db:"today"`
	}
	err = tx.Get(ctx, &n, `SELECT coalesce(sum(CASE WHEN state = 'open' AND expires_at > $1 THEN 1 ELSE 0 END), 0) AS waiting, count(*) AS today
		FROM asks WHERE asker = $2 AND created_at > $3 AND kind IN ('permission', 'question')`, core.Stamp(tx.Time()), user, core.Stamp(tx.Time().Add(-24*time.Hour)))
	if err != nil {
		return 0, 0, fmt.Errorf("count asks: %w", err)
	}
	return n.Open, n.Today, nil
}
