package runs

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables returns the tables that keep data of users.
func (s *Store) Tables() []string { return []string{"runs", "run_events"} }

// Forget deletes the user's runs with their events, at most r.Rows of them
// before the last transaction.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User == 0 || !r.Last && r.Rows <= 0 {
		return nil
	}
	query, args := `SELECT id, session_id FROM runs WHERE user_id = $1 ORDER BY started, id`, []any{r.User}
	if !r.Last {
		query, args = `SELECT id, session_id FROM runs WHERE user_id = $1 LIMIT $2`, []any{r.User, r.Rows}
	}
	var rows []struct {
		ID      string `db:"id"`
		Session string `db:"session_id"`
	}
	if err := tx.Select(ctx, &rows, query, args...); err != nil {
		return fmt.Errorf("forget runs: %w", err)
	}
	for _, row := range rows {
		r.Runs = append(r.Runs, row.ID)
		r.Turns[row.Session] = append(r.Turns[row.Session], row.ID)
		for _, q := range [...]string{`DELETE FROM run_events WHERE run = $1`, `DELETE FROM runs WHERE id = $1`} {
			if _, err := tx.Exec(ctx, q, row.ID); err != nil {
				return fmt.Errorf("forget runs: %w", err)
			}
		}
	}
	if !r.Last {
		r.Removed(len(rows), len(rows) == r.Rows)
	}
	return nil
}

// Merge makes the runs of one user another's.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `UPDATE runs SET user_id = $1 WHERE user_id = $2`, to, from); err != nil {
		return fmt.Errorf("give runs: %w", err)
	}
	return nil
}

// Chores returns the tables' housekeeping.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{{Name: "run_events", Every: 10 * time.Minute, Run: s.Prune}}
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{
		{Name: "runs", Query: `SELECT id, session_id, state, bot, chat, model, started, ended FROM runs WHERE user_id = $1 ORDER BY started DESC LIMIT $2`},
	}
}

// ForgetSession deletes the stored events of a session's runs, of all users:
// each run's events begin with the session's title, which may quote a user who
// is forgotten. None of the runs may be running.
func (s *Store) ForgetSession(ctx context.Context, tx *store.Tx, session string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM run_events WHERE run IN (SELECT id FROM runs WHERE session_id = $1)`, session); err != nil {
		return fmt.Errorf("forget a session's events: %w", err)
	}
	return nil
}
