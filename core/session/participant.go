package session

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, merges, moves and prunes what the tables of sessions keep.
type Tables struct{ Store *Store }

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string {
	return []string{"sessions", "session_tags", "session_contexts", "session_aliases", "deleted_imports", "chats", "session_words"}
}

// Forget removes the user's sessions. Of the runs in r.Turns it keeps those in
// sessions of other users, which lose a title that was made of their texts;
// sessions that do not exist may be in the trash, and are erased unless others wrote in them.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	for id := range r.Turns {
		s, err := t.Store.ByID(ctx, tx, id)
		switch {
		case core.KindOf(err) == core.NotFound:
			var shared bool
			if err := tx.Get(ctx, &shared, `SELECT EXISTS (SELECT 1 FROM runs WHERE session_id = $1 AND user_id NOT IN (0, $2))`, id, r.User); err != nil {
				return err
			}
			if shared {
				continue
			}
			r.Sessions = append(r.Sessions, id)
		case err != nil:
			return err
		case s.User != r.User:
			if err := t.Store.Untitle(ctx, tx, id); err != nil {
				return err
			}
			continue
		}
		delete(r.Turns, id)
	}
	var gone []string
	var err error
	if r.Last {
		gone, err = t.Store.Forget(ctx, tx, r.Person)
	} else if r.Rows > 0 {
		var more bool
		gone, more, err = t.Store.ForgetSome(ctx, tx, r.User, r.Rows)
		r.Removed(len(gone), more)
	}
	r.Sessions = append(r.Sessions, gone...)
	return err
}

// Merge makes the sessions of one user another's.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	return t.Store.Give(ctx, tx, from, to)
}

// Move rewrites a chat's id.
func (t Tables) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	return t.Store.Move(ctx, tx, bot, from, to)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{
		{Name: "search", Every: time.Minute, Run: t.Store.Fill},
		{Name: "opened", Every: time.Minute, Run: t.Store.Touched},
		{Name: "para_ids", Every: time.Minute, Run: t.Store.Number},
		{Name: "conversations", Every: 10 * time.Minute, Run: func(context.Context) (int, error) { t.Store.Evict(); return 0, nil }},
	}
}

// Exports returns the statements of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{
		{Name: "sessions", Query: `SELECT id, title, source, model, message_count, archived, created_at, last_accessed, trust_level FROM sessions WHERE user_id = $1 ORDER BY created_at DESC LIMIT $2`},
		{Name: "deleted_imports", Query: `SELECT source, original_id, at FROM deleted_imports WHERE user_id = $1 ORDER BY at DESC LIMIT $2`},
		{Name: "session_names", Query: `SELECT alias, session_id FROM session_aliases WHERE user_id = $1 LIMIT $2`},
	}
}
