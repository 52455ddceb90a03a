package project

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables returns the tables with data of users.
func (s *Store) Tables() []string { return []string{"projects", "project_chats"} }

// Forget deletes a user's projects.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 || r.User == core.Operator {
		return nil
	}
	return s.each(ctx, tx, r.User, func(id string) error { return s.drop(ctx, tx, id) })
}

func (s *Store) each(ctx context.Context, tx *store.Tx, user int64, f func(id string) error) error {
	var ids []string
	if err := tx.Select(ctx, &ids, `SELECT project_id FROM projects WHERE user_id = $1 ORDER BY project_id`, user); err != nil {
		return fmt.Errorf("projects of a user: %w", err)
	}
	for _, id := range ids {
		if err := f(id); err != nil {
			return err
		}
	}
	return nil
}

// Merge makes one user's projects another's. One whose name the other has gets its id's
// beginning behind the name.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	return s.each(ctx, tx, from, func(id string) error {
		p, err := s.Find(ctx, tx, from, id)
		if err != nil {
			return err
		}
		if _, exists, err := s.Named(ctx, tx, to, p.Name); err != nil {
			return err
		} else if exists {
			p.Name = core.CutRunes(p.Name, MaxName-10) + " " + id[:8]
		}
		_, err = tx.Exec(ctx, `UPDATE projects SET user_id = $1, name = $2, name_key = $3 WHERE project_id = $4`, to, p.Name, key(p.Name), id)
		return err
	})
}

// Move follows a chat to its new id.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM project_chats WHERE bot = $1 AND chat = $2 AND EXISTS (SELECT 1 FROM project_chats o WHERE o.bot = $1 AND o.chat = $3)`, bot, to, from); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE project_chats SET chat = $3 WHERE bot = $1 AND chat = $2`, bot, from, to)
	return err
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{{Name: "projects", Query: `SELECT project_id, name, created_at FROM projects WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`}}
}
