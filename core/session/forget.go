package session

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// forgetAtOnce is how many sessions one step of ForgetSome checks.
const forgetAtOnce = 100

// Forget deletes a user's sessions, and what their direct chats remember, and
// reports which sessions they were. Their files are the caller's, by Erase, once
// it has committed.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, p core.Person) (sessions []string, err error) {
	if p.User < 0 || p.User == core.Operator {
		return nil, core.Errorf(core.Invalid, "no such person")
	}
	if p.User != 0 {
		if err := tx.Select(ctx, &sessions, `SELECT id FROM sessions WHERE user_id = $1`, p.User); err != nil {
			return nil, fmt.Errorf("forget sessions: %w", err)
		}
		for _, id := range sessions {
			if err := s.Remove(ctx, tx, id); err != nil {
				return nil, fmt.Errorf("forget sessions: %w", err)
			}
		}
		for _, q := range [...]string{
			`DELETE FROM chats WHERE place = '' AND session_id IN (SELECT id FROM sessions WHERE user_id = $1)`,
			`UPDATE chats SET session_id = NULL WHERE session_id IN (SELECT id FROM sessions WHERE user_id = $1)`,
			`DELETE FROM sessions WHERE user_id = $1`,
			`DELETE FROM session_aliases WHERE user_id = $1`,
			`DELETE FROM deleted_imports WHERE user_id = $1`,
		} {
			if _, err := tx.Exec(ctx, q, p.User); err != nil {
				return nil, fmt.Errorf("forget sessions: %w", err)
			}
		}
	}
	for _, c := range p.Chats {
		if _, err := tx.Exec(ctx, `DELETE FROM chats WHERE bot = $1 AND chat = $2 AND place = ''`, c.Bot, c.Chat); err != nil {
			return nil, fmt.Errorf("forget chats: %w", err)
		}
	}
	return sessions, nil
}

// ForgetSome deletes some of a user's sessions, at most most rows of them,
// and reports which; more where there may be further ones. Their files are the
// caller's, by Erase, once it has committed. Forget is still to be called.
func (s *Store) ForgetSome(ctx context.Context, tx *store.Tx, user int64, most int) (sessions []string, more bool, err error) {
	if user <= 0 || user == core.Operator {
		return nil, false, core.Errorf(core.Invalid, "no such person")
	}
	var ids []string
	if err := tx.Select(ctx, &ids, `SELECT id FROM sessions WHERE user_id = $1 LIMIT $2`, user, forgetAtOnce); err != nil {
		return nil, false, fmt.Errorf("forget sessions: %w", err)
	}
	for _, id := range ids {
		n, err := s.Drop(ctx, tx, id, most)
		if err != nil {
			return nil, false, err
		}
		if most -= n; most <= 0 {
			return sessions, true, nil
		}
		if err := s.Remove(ctx, tx, id); err != nil {
			return nil, false, fmt.Errorf("forget sessions: %w", err)
		}
		for _, q := range [...]string{
			`DELETE FROM chats WHERE place = '' AND session_id = $1`,
			`UPDATE chats SET session_id = NULL WHERE session_id = $1`,
			`DELETE FROM sessions WHERE id = $1`,
		} {
			if _, err := tx.Exec(ctx, q, id); err != nil {
				return nil, false, fmt.Errorf("forget sessions: %w", err)
			}
		}
		sessions, most = append(sessions, id), most-1
	}
	return sessions, len(ids) == forgetAtOnce, nil
}

// Untitle removes a title that was generated from messages, for sessions in which a
// deleted user has written; the next turn sets another. A title set by a user stays.
func (s *Store) Untitle(ctx context.Context, tx *store.Tx, id string) error {
	n, err := tx.Exec(ctx, `UPDATE sessions SET title = NULL, title_source = 'default' WHERE id = $1 AND title_source <> 'user' AND title IS NOT NULL`, id)
	if err != nil {
		return fmt.Errorf("untitle session: %w", err)
	}
	if n == 0 {
		return nil
	}
	if err := s.indexHead(ctx, tx, id); err != nil {
		return err
	}
	return s.keepCurrent(ctx, tx, id)
}
