package session

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Take inserts a session that another program began in the vault, as sess says:
// owner, trust and source included. It can be searched after the next Fill.
func (s *Store) Take(ctx context.Context, tx *store.Tx, sess Session) error {
	if err := s.Restore(ctx, tx, sess, nil, true); err != nil {
		return fmt.Errorf("take session: %w", err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO search_sessions (session_id, behind) VALUES ($1, 1) ON CONFLICT (session_id) DO NOTHING`, sess.ID); err != nil {
		return fmt.Errorf("take session: %w", err)
	}
	return s.keepCurrent(ctx, tx, sess.ID)
}

// Grown notes what another program added to a session's transcript: the number of
// messages, when the last one was written, and the title, unless one was set here.
func (s *Store) Grown(ctx context.Context, tx *store.Tx, id string, messages int, title string, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET message_count = $2, last_accessed = CASE WHEN last_accessed < $3 THEN $3 ELSE last_accessed END WHERE id = $1`,
		id, messages, core.Stamp(at))
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET behind = 1 WHERE session_id = $1`, id)
	}
	if err == nil {
		_, err = s.SetTitle(ctx, tx, id, title, TitleDefault)
	}
	if err != nil {
		return fmt.Errorf("session has grown: %w", err)
	}
	return nil
}
