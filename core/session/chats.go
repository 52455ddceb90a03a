package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Current returns the conversation of a chat; false without one.
func (s *Store) Current(ctx context.Context, q store.Queryer, addr core.Address) (Session, bool, error) {
	var r row
	err := q.Get(ctx, &r, `SELECT `+columns+` FROM chats c JOIN sessions s ON s.id = c.session_id WHERE c.bot = $1 AND c.chat = $2`, addr.Bot, addr.Chat)
	if errors.Is(err, store.ErrNoRows) {
		return Session{}, false, nil
	}
	if err != nil {
		return Session{}, false, fmt.Errorf("session of chat: %w", err)
	}
	sess, err := r.session()
	return sess, err == nil, err
}

// Own returns the user's session with this id, or the only one whose id begins so
// (4 characters at least). core.NotFound without one, also where it is
// another user's; core.Invalid where several begin so.
func (s *Store) Own(ctx context.Context, q store.Queryer, user int64, id string) (Session, error) {
	if user <= 0 {
		return Session{}, notFound()
	}
	return beginning(ctx, q, id, ` AND s.user_id = $3`, user)
}

// Beginning returns the session, whoever's it is, by its id or the beginning of it.
func (s *Store) Beginning(ctx context.Context, q store.Queryer, id string) (Session, error) {
	return beginning(ctx, q, id, "")
}

func beginning(ctx context.Context, q store.Queryer, id, and string, args ...any) (Session, error) {
	id = strings.ToLower(strings.TrimSpace(id))
	if len(id) < 4 || strings.Trim(id, "0123456789abcdef-") != "" {
		return Session{}, notFound()
	}
	var rows []row
	err := q.Select(ctx, &rows, `SELECT `+columns+` FROM sessions s WHERE s.id >= $1 AND s.id < $2`+and+` ORDER BY s.id LIMIT 2`, append([]any{id, id + "g"}, args...)...)
	switch {
	case err != nil:
		return Session{}, fmt.Errorf("session by id: %w", err)
	case len(rows) == 0:
		return Session{}, notFound()
	case len(rows) > 1:
		return Session{}, texts.Error(core.Invalid, "resume_several")
	}
	return rows[0].session()
}

// Rebind makes the session id the conversation of ref's chat; whichever chat had
// it, and whatever conversation was there, goes without. The caller has made sure that
// no run writes to either (the lanes of both), and whose the session is.
func (s *Store) Rebind(ctx context.Context, tx *store.Tx, ref Ref, id string) error {
	was, bound, err := s.Bound(ctx, tx, id)
	if err != nil {
		return err
	}
	if bound {
		if err := s.Unbind(ctx, tx, was); err != nil {
			return err
		}
	}
	if err := s.Unbind(ctx, tx, ref.Address); err != nil {
		return err
	}
	if err := s.bind(ctx, tx, ref, id); err != nil {
		return err
	}
	if ref.Group() {
		if _, err := tx.Exec(ctx, `UPDATE sessions SET scope = $2 WHERE id = $1`, id, string(core.ScopeGroup)); err != nil {
			return fmt.Errorf("scope of a session: %w", err)
		}
	}
	return s.keepCurrent(ctx, tx, id)
}

// Continue begins a conversation in ref's chat that goes on from the session
// from, which must be ref's user's (in a group: the group's), else it is left out.
func (s *Store) Continue(ctx context.Context, tx *store.Tx, ref Ref, from string) (Session, error) {
	if ref.Options == nil {
		ref.Options = &core.Options{}
	}
	if err := s.Unbind(ctx, tx, ref.Address); err != nil {
		return Session{}, err
	}
	sess, err := s.create(ctx, tx, ref, uuid.NewString())
	if err != nil {
		return Session{}, err
	}
	if _, err := tx.Exec(ctx, `UPDATE sessions SET continued_from = $1 WHERE id = $2`, from, sess.ID); err != nil {
		return Session{}, fmt.Errorf("continue session: %w", err)
	}
	sess.ContinuedFrom = from
	if err := s.bind(ctx, tx, ref, sess.ID); err != nil {
		return Session{}, err
	}
	return sess, s.keepCurrent(ctx, tx, sess.ID)
}

// A ChatSettings is what users have set for one chat; "" is the setting's.
type ChatSettings struct {
	BusyMode string `db:"busy_mode"` // collect, queue or interrupt
	Model    string `db:"model"`     // as it was called when it was chosen; it may be gone
}

// Settings returns the chat's.
func (s *Store) Settings(ctx context.Context, q store.Queryer, addr core.Address) (ChatSettings, error) {
	var c ChatSettings
	err := q.Get(ctx, &c, `SELECT busy_mode, model FROM chats WHERE bot = $1 AND chat = $2`, addr.Bot, addr.Chat)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return c, fmt.Errorf("settings of chat: %w", err)
	}
	return c, nil
}

// SetSettings sets both. Whether there is such a model, and who may choose it,
// is the caller's to know.
func (s *Store) SetSettings(ctx context.Context, tx *store.Tx, ref Ref, c ChatSettings) error {
	_, err := tx.Exec(ctx, `INSERT INTO chats (bot, chat, thread, place, kind, name, busy_mode, model, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (bot, chat) DO UPDATE SET busy_mode = excluded.busy_mode, model = excluded.model, updated_at = excluded.updated_at`,
		ref.Bot, ref.Chat, ref.Thread, ref.Place, string(ref.Scope()), core.CleanName(ref.PlaceName), c.BusyMode, c.Model, core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("settings of chat: %w", err)
	}
	return nil
}

// Unchoose drops what was chosen for the conversations of ref's chat, in a group for
// those of all its chats, so that the model of the chat applies.
func (s *Store) Unchoose(ctx context.Context, tx *store.Tx, ref Ref) error {
	where, key := `chat = $2`, ref.Chat
	if ref.Group() {
		where, key = `place = $2`, ref.Place
	}
	var ids []string
	if err := tx.Select(ctx, &ids, `SELECT id FROM sessions WHERE chosen_model <> '' AND id IN (SELECT session_id FROM chats WHERE bot = $1 AND `+where+`) ORDER BY id`, ref.Bot, key); err != nil {
		return fmt.Errorf("chosen model: %w", err)
	}
	for _, id := range ids {
		if _, err := tx.Exec(ctx, `UPDATE sessions SET chosen_model = '' WHERE id = $1`, id); err != nil {
			return fmt.Errorf("chosen model: %w", err)
		}
		if err := s.keepCurrent(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// Give makes one user's sessions another's: they are one user. The ids by
// which clients called them end with the keys of the one who chose them.
func (s *Store) Give(ctx context.Context, tx *store.Tx, from, to int64) error {
	if from <= 0 || to <= 0 || from == to {
		return core.Errorf(core.Invalid, "no such person")
	}
	var ids []string
	if err := tx.Select(ctx, &ids, `UPDATE sessions SET user_id = $1 WHERE user_id = $2 RETURNING id`, to, from); err != nil {
		return fmt.Errorf("give sessions: %w", err)
	}
	for _, id := range ids {
		// The index finds by person: upkeep reads the session again.
		if err := s.Reread(ctx, tx, id); err != nil {
			return err
		}
		if err := s.keepCurrent(ctx, tx, id); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `DELETE FROM session_aliases WHERE user_id = $1`, from); err != nil {
		return fmt.Errorf("give sessions: %w", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO deleted_imports (user_id, source, original_id, at)
		SELECT CAST($1 AS BIGINT), source, original_id, at FROM deleted_imports WHERE user_id = $2 ON CONFLICT DO NOTHING`, to, from)
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM deleted_imports WHERE user_id = $1`, from)
	}
	if err != nil {
		return fmt.Errorf("give sessions: %w", err)
	}
	return nil
}
