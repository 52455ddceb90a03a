package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Move follows a chat whose id has changed on its platform: the conversation,
// settings and name go along. Where the new id has a row already, the old
// chat's conversation wins, and the new one's stays in the lists unbound.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, old, new string) error {
	if old == new {
		return nil
	}
	var found int
	if err := tx.Get(ctx, &found, `SELECT count(*) FROM chats WHERE bot = $1 AND chat = $2`, bot, old); err != nil {
		return fmt.Errorf("move chat: %w", err)
	}
	if found > 0 {
		if err := s.Unbind(ctx, tx, core.Address{Bot: bot, Chat: new}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM chats WHERE bot = $1 AND chat = $2`, bot, new); err != nil {
			return fmt.Errorf("move chat: %w", err)
		}
	}
	_, err := tx.Exec(ctx, `UPDATE chats SET
			chat = CASE WHEN chat = $2 THEN $3 ELSE chat END,
			place = CASE WHEN place = $2 THEN $3 ELSE place END, updated_at = $4
		WHERE bot = $1 AND (chat = $2 OR place = $2)`, bot, old, new, core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("move chat: %w", err)
	}
	var ids []string
	err = tx.Select(ctx, &ids, `SELECT session_id FROM chats WHERE bot = $1 AND (chat = $2 OR place = $2) AND session_id IS NOT NULL`, bot, new)
	if err != nil {
		return fmt.Errorf("move chat: %w", err)
	}
	for _, id := range ids {
		if err := s.keepCurrent(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// Forget deletes a person's sessions. After the commit their transcripts go to
// the trash and their sidecars away; what cannot be moved is logged.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, user int64) error {
	if user <= 0 {
		return core.Errorf(core.Invalid, "no such person")
	}
	var ids []string
	if err := tx.Select(ctx, &ids, `SELECT id FROM sessions WHERE user_id = $1`, user); err != nil {
		return fmt.Errorf("forget sessions: %w", err)
	}
	for _, q := range [...]string{
		`UPDATE chats SET session_id = NULL WHERE session_id IN (SELECT id FROM sessions WHERE user_id = $1)`,
		`DELETE FROM sessions WHERE user_id = $1`,
		`DELETE FROM session_aliases WHERE user_id = $1`,
	} {
		if _, err := tx.Exec(ctx, q, user); err != nil {
			return fmt.Errorf("forget sessions: %w", err)
		}
	}
	tx.OnCommit(func() {
		for _, id := range ids {
			s.cache.drop(id)
			if err := s.discard(id); err != nil {
				s.log.Error("a deleted session's files are still in the vault", "session", id, "error", err)
			}
		}
	})
	return nil
}

// discard moves a deleted session's files out of the way.
func (s *Store) discard(id string) error {
	if !vault.ValidID(id) {
		return nil
	}
	s.mu.Lock()
	delete(s.dirty, id)
	for s.writing { // it waits for no transaction, and none can add to its work now
		s.idle.Wait()
	}
	s.mu.Unlock()
	files, err := s.vault.FindTranscripts(id)
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, err := s.vault.Trash(name, s.clock.Now()); err != nil {
			return err
		}
	}
	if err := s.vault.Root().Remove(sidecar{ID: id}.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
