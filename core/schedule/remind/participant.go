package remind

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables returns the tables with data of users.
func (s *Store) Tables() []string { return []string{"reminders"} }

// Forget deletes the reminders of a user.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `DELETE FROM reminders WHERE user_id = $1`, r.User)
	return err
}

// Merge gives one user's reminders to another.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	_, err := tx.Exec(ctx, `UPDATE reminders SET user_id = $1 WHERE user_id = $2`, to, from)
	return err
}

// Move follows a chat to its new id.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	_, err := tx.Exec(ctx, `UPDATE reminders SET
			chat = CASE WHEN chat = $2 THEN $3 ELSE chat END, place = CASE WHEN place = $2 THEN $3 ELSE place END
		WHERE bot = $1 AND (chat = $2 OR place = $2)`, bot, from, to)
	return err
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{{Name: "reminders", Query: `SELECT bot, chat, text, rule, zone, due, created FROM reminders WHERE user_id = $1 ORDER BY due LIMIT $2`}}
}
