// Package index finds sessions by the words and the meaning of their messages, titles and
// tags. It owns the table session_words, and the rows of chunks and index_manifest whose
// type is session. It reads messages from transcripts, and stores no text of them. Methods
// that take a *store.Tx work inside the caller's transaction.
package index

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// A Head is what can be found of a session other than its messages.
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

// A Vault has the files of transcripts; *vault.Vault is one.
type Vault interface {
	Root() *os.Root
	Stat(name string) (fs.FileInfo, error)
	FindTranscripts(session string) ([]string, error)
}

// Options for New. All but DropVectors are needed.
type Options struct {
	DB       *store.DB
	Vault    Vault
	Files    *transcript.Files
	Log      *slog.Logger
	Sessions Sessions

	// DropVectors removes what is stored of the meaning of chunks that are deleted, as
	// vector.Drop does. nil: chunks have no vectors.
	DropVectors func(ctx context.Context, tx *store.Tx, chunks []int64) error
	// Pause is called between the transactions of Fill, each of which inserts some 10 kB of
	// messages, so that others come first. nil: it does not pause.
	Pause func(ctx context.Context)
}

// An Index is safe for concurrent use.
type Index struct {
	db       *store.DB
	vault    Vault
	files    *transcript.Files
	log      *slog.Logger
	sessions Sessions
	vectors  func(ctx context.Context, tx *store.Tx, chunks []int64) error
	pause    func(ctx context.Context)
	parts    atomic.Int64 // transactions since the index of words was merged
}

// New returns the index in o.DB.
func New(o Options) *Index {
	x := &Index{db: o.DB, vault: o.Vault, files: o.Files, log: o.Log, sessions: o.Sessions, vectors: o.DropVectors, pause: o.Pause}
	if x.vectors == nil {
		x.vectors = func(context.Context, *store.Tx, []int64) error { return nil }
	}
	if x.pause == nil {
		x.pause = func(context.Context) {}
	}
	return x
}

// shedStep bounds the rows that one transaction deletes from the index, so that no
// one waits long for the database's one writer.
const shedStep = 500

// A key is a chunk in the order of a session's.
type key struct {
	N     int64  `db:"n"`
	Field string `db:"field"`
	Index int64  `db:"chunk_index"`
}

// Drop deletes at most most rows of a session from the index and returns how many.
func (x *Index) Drop(ctx context.Context, tx *store.Tx, id string, most int) (int, error) {
	return x.dropFrom(ctx, tx, id, "", most)
}

// dropFrom is Drop for the fields from a name on.
func (x *Index) dropFrom(ctx context.Context, tx *store.Tx, id, field string, most int) (int, error) {
	var rows []key
	err := tx.Select(ctx, &rows, `SELECT n, field, chunk_index FROM chunks WHERE content_id = $1 AND field >= $2 ORDER BY field, chunk_index LIMIT $3`, id, field, most)
	if err == nil && len(rows) > 0 {
		numbers := make([]int64, len(rows))
		for i, r := range rows {
			numbers[i] = r.N
		}
		last := rows[len(rows)-1]
		if err = x.vectors(ctx, tx, numbers); err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM chunks WHERE content_id = $1 AND field >= $2 AND (field, chunk_index) <= ($3, $4)`, id, field, last.Field, last.Index)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("search index: %w", err)
	}
	return len(rows), nil
}

// dropAll is Drop for all rows.
func (x *Index) dropAll(ctx context.Context, tx *store.Tx, id string) error {
	for {
		if n, err := x.Drop(ctx, tx, id, shedStep); err != nil || n < shedStep {
			return err
		}
	}
}

// Remove deletes a session from the index. Call Shed first for large sessions.
func (x *Index) Remove(ctx context.Context, tx *store.Tx, id string) error {
	if err := x.dropAll(ctx, tx, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM index_manifest WHERE content_id = $1 AND content_type = 'session'`, id); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
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
	err := x.db.Get(ctx, &n, `SELECT count(*) FROM (SELECT 1 FROM chunks WHERE content_id = $1 LIMIT $2) AS few`, id, shedStep)
	if err != nil {
		return false, fmt.Errorf("search index: %w", err)
	}
	return n >= shedStep, nil
}

// What Fill has to do with a session; the values of the column behind.
const (
	behind = 1 // index what is missing; it is newer than all that is indexed
	older  = 2 // index it as older than all that is indexed
)

// Expect has Fill index a session that the index does not know.
func (x *Index) Expect(ctx context.Context, tx *store.Tx, id string) error {
	return x.expect(ctx, tx, id, "", 0, behind, tx.Time())
}

func (x *Index) expect(ctx context.Context, tx *store.Tx, id, file string, bytes int64, behind int, at time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO index_manifest (content_id, content_type, indexed_at, chunk_count, source_path, area, part, size, behind)
		VALUES ($1, 'session', $2, 0, $3, 'session', 1, $4, $5) ON CONFLICT (content_id) DO NOTHING`, id, core.Stamp(at), file, bytes, behind)
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// Behind has Fill index what is new in a session's transcript.
func (x *Index) Behind(ctx context.Context, tx *store.Tx, id string) error {
	return x.set(ctx, tx, `behind = 1`, id)
}

// Reread has Fill index a session again from the beginning.
func (x *Index) Reread(ctx context.Context, tx *store.Tx, id string) error {
	return x.set(ctx, tx, `size = 0, behind = CASE WHEN behind = 2 THEN 2 ELSE 1 END`, id)
}

// set changes what the index knows of a session.
func (x *Index) set(ctx context.Context, tx *store.Tx, change, id string, args ...any) error {
	_, err := tx.Exec(ctx, `UPDATE index_manifest SET `+change+` WHERE content_id = $1 AND content_type = 'session'`, append([]any{id}, args...)...)
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// Reword removes a session's messages from the index; Fill indexes them again. Call
// Shed first for large sessions.
func (x *Index) Reword(ctx context.Context, tx *store.Tx, id string) error {
	if err := x.Remove(ctx, tx, id); err != nil {
		return err
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
