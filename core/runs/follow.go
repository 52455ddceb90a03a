package runs

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Finished run is one about which something is to be done.
type Finished struct {
	ID, Session, Bot string
	User             int64
	Started, Ended   time.Time
	Follow           string // see End
}

// ToFollow returns the runs about which something is to be done, those that ended first
// first, at most limit, behind the run after (the zero value: from the first).
func (s *Store) ToFollow(ctx context.Context, after Finished, limit int) ([]Finished, error) {
	var rows []struct {
		ID      string `db:"id"`
		Session string `db:"session_id"`
		Bot     string `db:"bot"`
		User    int64  `db:"user_id"`
		Started string `db:"started"`
		Ended   string `db:"ended"`
		Follow  string `db:"follow"`
	}
	ended := ""
	if !after.Ended.IsZero() {
		ended = core.Stamp(after.Ended)
	}
	err := s.db.Select(ctx, &rows, `SELECT id, session_id, bot, user_id, started, ended, follow FROM runs
		WHERE follow <> '' AND (ended, id) > ($1, $2) ORDER BY ended, id LIMIT $3`, ended, after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("runs to follow: %w", err)
	}
	out := make([]Finished, len(rows))
	for i, r := range rows {
		out[i] = Finished{ID: r.ID, Session: r.Session, Bot: r.Bot, User: r.User, Started: core.TimeOf(r.Started), Ended: core.TimeOf(r.Ended), Follow: r.Follow}
	}
	return out, nil
}

// CountToFollow returns how many runs ToFollow would return without a limit.
func (s *Store) CountToFollow(ctx context.Context) (n int, err error) {
	if err = s.db.Get(ctx, &n, `SELECT count(*) FROM runs WHERE follow <> ''`); err != nil {
		return 0, fmt.Errorf("runs to follow: %w", err)
	}
	return n, nil
}

// Followed notes that nothing is left to do about a run.
func (s *Store) Followed(ctx context.Context, tx *store.Tx, run string) error {
	if _, err := tx.Exec(ctx, `UPDATE runs SET follow = '' WHERE id = $1`, run); err != nil {
		return fmt.Errorf("run followed: %w", err)
	}
	return nil
}

// Answered returns how many runs of a session were answered, up to one that ended then.
func (s *Store) Answered(ctx context.Context, q store.Queryer, session string, until time.Time) (n int, err error) {
	if err = q.Get(ctx, &n, `SELECT count(*) FROM runs WHERE session_id = $1 AND state = 'done' AND ended <= $2`, session, core.Stamp(until)); err != nil {
		return 0, fmt.Errorf("answered runs: %w", err)
	}
	return n, nil
}

// Shared reports whether a user other than this one has begun runs in a session.
func (s *Store) Shared(ctx context.Context, q store.Queryer, session string, user int64) (shared bool, err error) {
	if err = q.Get(ctx, &shared, `SELECT EXISTS (SELECT 1 FROM runs WHERE session_id = $1 AND user_id <> $2)`, session, user); err != nil {
		return false, fmt.Errorf("users of a session: %w", err)
	}
	return shared, nil
}
