package session

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript/redact"
	"gatehouse/core/vault"
)

// Move follows a chat to its new id on the platform, with conversation, settings and
// name. If the new id has a row, the old chat's conversation wins, and the new one's
// stays in the lists unbound.
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

// Owned returns the direct chats that a user's sessions are bound to, and the
// sessions.
func (s *Store) Owned(ctx context.Context, q store.Queryer, user int64) (sessions []string, chats []core.Address, err error) {
	if user == 0 {
		return nil, nil, nil
	}
	if err := q.Select(ctx, &sessions, `SELECT id FROM sessions WHERE user_id = $1 ORDER BY created_at, id`, user); err != nil {
		return nil, nil, fmt.Errorf("sessions of a person: %w", err)
	}
	var rows []struct{ Bot, Chat string }
	err = q.Select(ctx, &rows, `SELECT c.bot, c.chat FROM chats c JOIN sessions s ON s.id = c.session_id WHERE s.user_id = $1 AND c.place = ''`, user)
	if err != nil {
		return nil, nil, fmt.Errorf("chats of a person: %w", err)
	}
	for _, r := range rows {
		chats = append(chats, core.Address{Bot: r.Bot, Chat: r.Chat})
	}
	return sessions, chats, nil
}

// Discard moves a deleted session's files out of the way.
func (s *Store) Discard(id string) error {
	if !vault.ValidID(id) {
		return nil
	}
	s.sidecars.Drop(id)
	files, err := s.vault.FindTranscripts(id)
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, err := s.vault.Trash(name, s.clock.Now()); err != nil {
			return err
		}
	}
	if err := s.sidecars.Remove(id); err != nil {
		return err
	}
	return nil
}

// Erase deletes the files of a deleted session permanently: its transcripts, see
// transcript.Files.Erase, and its sidecar. It can be repeated. Nothing may write to the
// session concurrently.
func (s *Store) Erase(id string) error {
	if !vault.ValidID(id) {
		return nil
	}
	s.sidecars.Drop(id)
	if err := s.Files.Erase(id); err != nil {
		return err
	}
	if err := s.sidecars.Remove(id); err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	return nil
}

// Redact writes copies of the transcripts of a shared session without what the runs wrote;
// see redact.Redact.
func (s *Store) Redact(id string, runs []string) (*redact.Redaction, error) {
	return redact.Redact(s.vault, id, runs, func() { s.Uncache(id) })
}
