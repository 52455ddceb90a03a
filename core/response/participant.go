package response

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables returns the tables with data of users.
func (s *Store) Tables() []string { return []string{"responses"} }

// Forget deletes the responses of a user.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM responses WHERE user_id = $1`, r.User); err != nil {
		return fmt.Errorf("forget responses: %w", err)
	}
	return nil
}

// Merge gives one user's responses to another.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `UPDATE responses SET user_id = $1 WHERE user_id = $2`, to, from); err != nil {
		return fmt.Errorf("give responses: %w", err)
	}
	return nil
}

// ForgetSession deletes the responses of a session that is deleted.
func (s *Store) ForgetSession(ctx context.Context, tx *store.Tx, session string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM responses WHERE session_id = $1`, session); err != nil {
		return fmt.Errorf("forget a session's responses: %w", err)
	}
	return nil
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{{Name: "responses", Query: `SELECT id, session_id, previous, state, request, answer, created FROM responses WHERE user_id = $1 AND hidden = 0
		ORDER BY created DESC LIMIT $2`}}
}

// Chores returns the table's housekeeping.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{{Name: "old_responses", Every: time.Hour, Run: s.prune}}
}

// prune deletes what is older than MaxAge, a few in each transaction.
func (s *Store) prune(ctx context.Context) (total int, err error) {
	for {
		var n int64
		err := s.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.Exec(ctx, `DELETE FROM responses WHERE id IN (SELECT id FROM responses WHERE created < $1 LIMIT 200)`, core.Stamp(s.clock.Now().Add(-MaxAge)))
			return err
		})
		if total += int(n); err != nil || n == 0 {
			return total, err
		}
	}
}
