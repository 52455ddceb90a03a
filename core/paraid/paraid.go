// Package paraid mints and registers para-IDs: short ids of entries in the vault's
// files and of conversations, unique over all of them. An id is given once and never
// changes: not when the entry is edited, moved or copied to another machine.
//
// The table para_ids is the registry. The file .parachute/ids.jsonl in the vault has
// the same rows, so that ids survive the loss of the database.
package paraid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/store"
)

// An Entry is one row of the registry.
type Entry = entry.Entry

// Types of entries.
const (
	Journal = entry.Journal
	Chat    = entry.Chat
	ChatLog = entry.ChatLog
)

// Random returns a new id that no registry has been asked about.
func Random() string { return entry.Random() }

// Valid reports whether id is a para-ID.
func Valid(id string) bool { return entry.Valid(id) }

// maxTries limits how often Mint makes another id after one that is taken.
const maxTries = 8

// Mint registers e under a new id and returns it with that. A zero e.Created is the
// time of tx.
func (r *Registry) Mint(ctx context.Context, tx *store.Tx, e Entry) (Entry, error) {
	if e.Created.IsZero() {
		e.Created = tx.Time()
	}
	for range maxTries {
		e.ID = Random()
		free, err := r.insert(ctx, tx, e)
		if err != nil {
			return Entry{}, err
		}
		if free {
			return e, nil
		}
	}
	return Entry{}, errors.New("no free para-ID was found")
}

// Claim registers e under the id that it has, and returns the entry that holds the id:
// e, or the one that was registered before, which stays as it is. It is for ids that
// were found in files.
func (r *Registry) Claim(ctx context.Context, tx *store.Tx, e Entry) (holder Entry, err error) {
	if e.Created.IsZero() {
		e.Created = tx.Time()
	}
	free, err := r.insert(ctx, tx, e)
	if err != nil || free {
		return e, err
	}
	return r.Find(ctx, tx, e.ID)
}

// insert registers e and reports whether its id was free.
func (r *Registry) insert(ctx context.Context, tx *store.Tx, e Entry) (bool, error) {
	if err := e.Check(); err != nil {
		return false, err
	}
	n, err := tx.Exec(ctx, `INSERT INTO para_ids (id, type, path, created_at, user_id) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING`,
		e.ID, e.Type, e.Path, core.Stamp(e.Created), e.User)
	if err != nil {
		return false, fmt.Errorf("register para-ID: %w", err)
	}
	if n > 0 {
		tx.OnCommit(func() { r.file.add(e) })
	}
	return n > 0, nil
}

// Find returns the entry of id, or core.NotFound.
func (r *Registry) Find(ctx context.Context, q store.Queryer, id string) (Entry, error) {
	var w row
	err := q.Get(ctx, &w, `SELECT id, type, path, created_at, user_id FROM para_ids WHERE id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return Entry{}, core.Errorf(core.NotFound, "no entry has the id %q", id)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("read para-ID: %w", err)
	}
	return w.entry(), nil
}

// maxAt is the most entries that At returns.
const maxAt = 10_000

// At returns the entries of a path, oldest first, at most maxAt.
func (r *Registry) At(ctx context.Context, q store.Queryer, path, kind string) ([]Entry, error) {
	var rows []row
	err := q.Select(ctx, &rows, `SELECT id, type, path, created_at, user_id FROM para_ids WHERE path = $1 AND type = $2 ORDER BY created_at, id LIMIT $3`, path, kind, maxAt)
	if err != nil {
		return nil, fmt.Errorf("read para-IDs: %w", err)
	}
	all := make([]Entry, len(rows))
	for i, w := range rows {
		all[i] = w.entry()
	}
	return all, nil
}

// Count returns how many ids of a type the user has.
func (r *Registry) Count(ctx context.Context, q store.Queryer, user int64, kind string) (n int, err error) {
	if err := q.Get(ctx, &n, `SELECT count(*) FROM para_ids WHERE user_id = $1 AND type = $2`, user, kind); err != nil {
		return 0, fmt.Errorf("count para-IDs: %w", err)
	}
	return n, nil
}

// Paths returns paths of entries of a type that were registered before a time, in order
// from behind after, at most 200.
func (r *Registry) Paths(ctx context.Context, q store.Queryer, kind string, before time.Time, after string) (paths []string, err error) {
	err = q.Select(ctx, &paths, `SELECT DISTINCT path FROM para_ids WHERE path > $1 AND type = $2 AND created_at < $3 ORDER BY path LIMIT 200`, after, kind, core.Stamp(before))
	if err != nil {
		return nil, fmt.Errorf("paths of para-IDs: %w", err)
	}
	return paths, nil
}

// Drop removes ids; the next Flush removes them from the file.
func (r *Registry) Drop(ctx context.Context, tx *store.Tx, ids []string) error {
	for _, id := range ids {
		if _, err := tx.Exec(ctx, `DELETE FROM para_ids WHERE id = $1`, id); err != nil {
			return fmt.Errorf("drop para-ID: %w", err)
		}
	}
	tx.OnCommit(r.file.stale)
	return nil
}

// Relocate notes that the entry id is in the file path now, and is the user's.
func (r *Registry) Relocate(ctx context.Context, tx *store.Tx, id, path string, user int64) error {
	if path == "" || len(path) > entry.MaxPath {
		return core.Errorf(core.Invalid, "the path of an id is empty or too long")
	}
	n, err := tx.Exec(ctx, `UPDATE para_ids SET path = $2, user_id = $3 WHERE id = $1 AND (path <> $2 OR user_id <> $3)`, id, path, user)
	if err != nil {
		return fmt.Errorf("move para-ID: %w", err)
	}
	if n > 0 {
		tx.OnCommit(r.file.stale)
	}
	return nil
}

// ForChat returns the id of a conversation, and mints it if there is none.
func (r *Registry) ForChat(ctx context.Context, tx *store.Tx, session string, user int64) (string, error) {
	have, err := r.At(ctx, tx, session, Chat)
	if err != nil {
		return "", err
	}
	if len(have) > 0 {
		return have[0].ID, nil
	}
	e, err := r.Mint(ctx, tx, Entry{Type: Chat, Path: session, User: user})
	return e.ID, err
}

type row struct {
	ID      string `db:"id"`
	Type    string `db:"type"`
	Path    string `db:"path"`
	Created string `db:"created_at"`
	User    int64  `db:"user_id"`
}

func (w row) entry() Entry {
	return Entry{ID: w.ID, Type: w.Type, Path: w.Path, User: w.User, Created: core.TimeOf(w.Created)}
}
