package paraid

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, merges and exports what the registry has of a user.
type Tables struct{ Registry *Registry }

// Tables returns the table that has data of users.
func (Tables) Tables() []string { return []string{"para_ids"} }

// Forget removes the user's ids; the next Flush removes them from the file.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= core.Operator {
		return nil
	}
	if r.Last {
		_, err := tx.Exec(ctx, `DELETE FROM para_ids WHERE user_id = $1`, r.User)
		tx.OnCommit(t.Registry.file.stale)
		return err
	}
	if r.Rows == 0 {
		return nil
	}
	n, err := tx.Exec(ctx, `DELETE FROM para_ids WHERE id IN (SELECT id FROM para_ids WHERE user_id = $1 LIMIT $2)`, r.User, r.Rows)
	if err != nil {
		return fmt.Errorf("forget para-IDs: %w", err)
	}
	r.Removed(int(n), int(n) == r.Rows)
	tx.OnCommit(t.Registry.file.stale)
	return nil
}

// Merge makes the ids of one user another's. The user's directory becomes a part of
// the other's, where no pass looks for entries.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `UPDATE para_ids SET user_id = $2 WHERE user_id = $1`, from, to); err != nil {
		return fmt.Errorf("merge para-IDs: %w", err)
	}
	tx.OnCommit(t.Registry.file.stale)
	return nil
}

// deletedChats is how long ids of deleted conversations are kept, so that one which is
// restored from the trash has the id that it had.
const deletedChats = 60 * 24 * time.Hour

// Chores returns the housekeeping: the file is brought up to date, and ids of deleted
// conversations are removed.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{
		{Name: "para_ids_file", Every: time.Minute, Run: t.Registry.Flush},
		{Name: "old_para_ids", Every: 24 * time.Hour, Run: t.Registry.Prune},
	}
}

// Prune removes the ids of conversations that were begun long ago and deleted since.
func (r *Registry) Prune(ctx context.Context) (n int, err error) {
	err = r.db.Tx(ctx, func(tx *store.Tx) error {
		gone, err := tx.Exec(ctx, `DELETE FROM para_ids WHERE type = $1 AND created_at < $2 AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = para_ids.path)`,
			Chat, core.Stamp(tx.Time().Add(-deletedChats)))
		if n = int(gone); n > 0 {
			tx.OnCommit(r.file.stale)
		}
		return err
	})
	return n, err
}

// Exports returns the statement of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{{Name: "para_ids", Query: `SELECT id, type, path, created_at FROM para_ids WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`}}
}
