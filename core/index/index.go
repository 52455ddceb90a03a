// Package index finds sessions by the words of their messages, titles and tags. It
// owns the tables search, search_docs and search_sessions, and reads messages from
// transcripts. Methods that take a *store.Tx work inside the caller's transaction.
package index

import (
	"context"
	"fmt"
	"log/slog"

	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// A Head is what can be found of a session besides its messages.
type Head struct {
	User  int64
	Title string
	Tags  []string
}

// Sessions is what the index asks about sessions.
type Sessions interface {
	// Head returns the session's; core.NotFound without one.
	Head(ctx context.Context, q store.Queryer, id string) (Head, error)
	// TranscriptName returns where the session's transcript would be written, a
	// slash path relative to the vault; "" if that cannot be determined.
	TranscriptName(id string) string
}

// Options for New. All are needed.
type Options struct {
	DB       *store.DB
	Vault    *vault.Vault
	Files    *transcript.Files
	Log      *slog.Logger
	Sessions Sessions
}

// An Index is safe for concurrent use.
type Index struct {
	db       *store.DB
	vault    *vault.Vault
	files    *transcript.Files
	log      *slog.Logger
	sessions Sessions
}

// New returns the index in o.DB.
func New(o Options) *Index {
	return &Index{db: o.DB, vault: o.Vault, files: o.Files, log: o.Log, sessions: o.Sessions}
}

// shedStep bounds the rows that one transaction deletes from the index, so that no
// one waits long for the database's one writer.
const shedStep = 500

// Drop deletes at most most rows of a session from the index and returns how many.
func (x *Index) Drop(ctx context.Context, tx *store.Tx, id string, most int) (int, error) {
	n, err := tx.Exec(ctx, `DELETE FROM search_docs WHERE id IN (SELECT d.id FROM search_sessions w JOIN search_docs d ON d.n = w.n WHERE w.session_id = $1 LIMIT $2)`, id, most)
	if err != nil {
		return 0, fmt.Errorf("search index: %w", err)
	}
	return int(n), nil
}

// Shed removes a session from the index, in short transactions, so that a later
// transaction that deletes or rewords it is short too. Upkeep indexes again what
// remains.
func (x *Index) Shed(ctx context.Context, id string) error {
	for {
		n := 0
		err := x.db.Tx(ctx, func(tx *store.Tx) (err error) {
			if err := x.Reread(ctx, tx, id); err != nil {
				return err
			}
			n, err = x.Drop(ctx, tx, id, shedStep)
			return err
		})
		if err != nil || n < shedStep {
			return err
		}
	}
}

// Heavy reports whether the index has so much of a session that it is to be Shed
// before it is deleted.
func (x *Index) Heavy(ctx context.Context, id string) (bool, error) {
	var n int
	err := x.db.Get(ctx, &n, `SELECT count(*) FROM (SELECT 1 FROM search_sessions w JOIN search_docs d ON d.n = w.n WHERE w.session_id = $1 LIMIT $2) AS few`, id, shedStep)
	if err != nil {
		return false, fmt.Errorf("search index: %w", err)
	}
	return n >= shedStep, nil
}

// Reread has Fill index a session again from the beginning.
func (x *Index) Reread(ctx context.Context, tx *store.Tx, id string) error {
	if _, err := tx.Exec(ctx, `UPDATE search_sessions SET bytes = 0, behind = 1 WHERE session_id = $1`, id); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// Reword removes a session's messages from the index; Fill indexes them again. Call
// Shed first for large sessions.
func (x *Index) Reword(ctx context.Context, tx *store.Tx, id string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM search_sessions WHERE session_id = $1`, id); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return x.readHead(ctx, tx, id)
}

// readHead indexes a session's title and tags as the database has them.
func (x *Index) readHead(ctx context.Context, tx *store.Tx, id string) error {
	h, err := x.sessions.Head(ctx, tx, id)
	if err != nil {
		return err
	}
	return x.SetHead(ctx, tx, id, h)
}
