package backup

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables returns the tables with data of users.
func (s *Store) Tables() []string { return []string{"context_backups", "token_counters"} }

// Forget deletes the backups of a user's conversations, and of those of others in which
// the user has written: the notes may have it.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	for id := range r.Turns {
		if err := s.Blank(ctx, tx, id); err != nil {
			return err
		}
	}
	if r.User != core.Operator {
		if _, err := tx.Exec(ctx, `DELETE FROM context_backups WHERE user_id = $1`, r.User); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM token_counters WHERE user_id = $1`, r.User)
	return err
}

// Blank deletes the backups of a conversation of which turns are blanked, and its counters:
// of one that is being written, nothing is stored.
func (s *Store) Blank(ctx context.Context, tx *store.Tx, session string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM context_backups WHERE conversation_id = $1`, session); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM token_counters WHERE conversation_id = $1`, session)
	return err
}

// Merge makes one user's backups another's.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `UPDATE context_backups SET user_id = $1 WHERE user_id = $2`, to, from); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE token_counters SET user_id = $1 WHERE user_id = $2`, to, from)
	return err
}

// Exports returns the statements of an export. The text of a row is decrypted.
func (s *Store) Exports() []store.Export {
	return []store.Export{{Name: "context_backups", Query: `SELECT backup_id, conversation_id AS session_id, model_id, "trigger", thread_number, token_estimate, created_at, backup_text
		FROM context_backups WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`,
		Open: func(row map[string]any) error {
			id, _ := row["backup_id"].(string)
			value, _ := row[column].(string)
			text, err := s.o.Box.Open(place(id), value)
			row[column] = text
			return err
		}}}
}
