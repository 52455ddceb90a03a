package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
)

// Take inserts a session that another program began, as sess states: owner, trust and
// source included, with tags. It can be searched after the next Fill.
func (s *Store) Take(ctx context.Context, tx *store.Tx, sess Session, tags ...string) error {
	if err := s.Restore(ctx, tx, sess, &sidecar.Sidecar{Tags: tags, Scope: sess.Scope}, true); err != nil {
		return fmt.Errorf("take session: %w", err)
	}
	if err := s.Expect(ctx, tx, sess.ID); err != nil {
		return fmt.Errorf("take session: %w", err)
	}
	if original, ok := originalOf(sess.Metadata).(string); ok {
		if _, err := tx.Exec(ctx, `DELETE FROM deleted_imports WHERE user_id = $1 AND source = $2 AND original_id = $3`, sess.User, sess.Source, original); err != nil {
			return fmt.Errorf("take session: %w", err)
		}
	}
	return s.keepCurrent(ctx, tx, sess.ID)
}

// Retake changes a session whose transcript was replaced by a newer one of another
// program: source, count, times, model, metadata and trust become those of sess, and the title,
// unless a user has set it. tags are added as far as they are valid and there is room. It can
// be searched after the next Fill. core.NotFound without the session.
func (s *Store) Retake(ctx context.Context, tx *store.Tx, sess Session, tags ...string) error {
	was, err := s.Detail(ctx, tx, sess.ID)
	if err != nil {
		return err
	}
	if was.TitleSource == TitleUser || sess.Title == "" {
		sess.Title, sess.TitleSource = was.Title, was.TitleSource
	}
	_, err = tx.Exec(ctx, `UPDATE sessions SET title = $2, title_source = $3, message_count = $4, last_accessed = $5, model = $6, metadata = $7, trust_level = $8, original_id = $9, source = $10 WHERE id = $1`,
		sess.ID, sess.Title, sess.TitleSource, sess.MessageCount, core.Stamp(sess.LastAccessed), cmp.Or(sess.Model, was.Model), string(sess.Metadata), sess.TrustLevel, originalOf(sess.Metadata), sess.Source)
	if err != nil {
		return fmt.Errorf("retake session: %w", err)
	}
	all := slices.Concat(was.Tags, tags)
	err = keepList(ctx, tx, sess.ID, tagRows, was.Tags, valid(all, maxTags, tagOf))
	if err == nil {
		err = s.Reread(ctx, tx, sess.ID)
	}
	if err == nil {
		err = s.indexHead(ctx, tx, sess.ID)
	}
	if err != nil {
		return err
	}
	tx.OnCommit(func() { s.Uncache(sess.ID) })
	return s.keepCurrent(ctx, tx, sess.ID)
}

// Original returns the user's session that was imported from source, where it has this id;
// core.NotFound without one. Of several the oldest counts.
func (s *Store) Original(ctx context.Context, q store.Queryer, user int64, source, original string) (Session, error) {
	var r row
	err := q.Get(ctx, &r, `SELECT `+columns+` FROM sessions s WHERE s.original_id = $1 AND s.source = $2 AND s.user_id = $3 ORDER BY s.created_at, s.id LIMIT 1`, original, source, user)
	if errors.Is(err, store.ErrNoRows) {
		return Session{}, notFound()
	}
	if err != nil {
		return Session{}, fmt.Errorf("session by its original id: %w", err)
	}
	return r.session()
}

// DeletedAt returns when the session id was deleted last; the zero time where the audit log
// does not have it.
func (s *Store) DeletedAt(ctx context.Context, q store.Queryer, id string) (time.Time, error) {
	var at string
	if err := q.Get(ctx, &at, `SELECT coalesce(max(at), '') FROM audit_events WHERE action = 'session.delete' AND subject = $1`, id); err != nil {
		return time.Time{}, fmt.Errorf("deleted sessions: %w", err)
	}
	return core.TimeOf(at), nil
}

// DeletedOriginal reports whether the user's session that was imported from source, where it
// has this id, was deleted since, and not imported again.
func (s *Store) DeletedOriginal(ctx context.Context, q store.Queryer, user int64, source, original string) (deleted bool, err error) {
	err = q.Get(ctx, &deleted, `SELECT EXISTS (SELECT 1 FROM deleted_imports WHERE user_id = $1 AND source = $2 AND original_id = $3)`, user, source, original)
	if err != nil {
		return false, fmt.Errorf("deleted imports: %w", err)
	}
	return deleted, nil
}

// originalOf returns the original id that metadata has; nil without one.
func originalOf(metadata json.RawMessage) any {
	var m struct {
		Original string `json:"original_id"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil || m.Original == "" {
		return nil
	}
	return m.Original
}

// Grown notes what another program added to a session's transcript: the number of
// messages, when the last one was written, and the title, unless one was set here.
func (s *Store) Grown(ctx context.Context, tx *store.Tx, id string, messages int, title string, at time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET message_count = $2, last_accessed = CASE WHEN last_accessed < $3 THEN $3 ELSE last_accessed END WHERE id = $1`,
		id, messages, core.Stamp(at))
	if err == nil {
		err = s.Behind(ctx, tx, id)
	}
	if err == nil {
		_, err = s.SetTitle(ctx, tx, id, title, TitleDefault)
	}
	if err != nil {
		return fmt.Errorf("session has grown: %w", err)
	}
	return nil
}
