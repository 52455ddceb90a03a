package attach

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/attach/content"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// A Box encrypts previews; *sealed.Box implements it.
type Box interface {
	Seal(at sealed.Place, text string) (string, error)
	Open(at sealed.Place, value string) (string, error)
}

const (
	table  = "attachments"
	column = "preview"
)

// Sealed returns the encrypted column, and the expression of its row in sealed.Place.
func Sealed() (inTable, name, row string) { return table, column, "path" }

func place(path string) sealed.Place { return sealed.Place{Table: table, Column: column, Row: path} }

// A Turn is what files came with.
type Turn struct {
	User         int64
	Session, Run string
}

// Record stores the owner of a turn's files, as the function Record does, and in the same
// statements what was read of them, by path. A Ledger without a box, and the zero Ledger,
// keep no previews.
func (l *Ledger) Record(ctx context.Context, tx *store.Tx, t Turn, files []core.File, read map[string]content.Content) error {
	for _, f := range files {
		var k known
		if c, ok := read[f.Path]; ok {
			k.words, k.truncated = number(c.Words), number(0)
			if c.Pages > 0 {
				k.pages = number(c.Pages)
			}
			if c.Truncated {
				k.truncated = number(1)
			}
			if c.Preview != "" && l.box != nil {
				value, err := l.box.Seal(place(f.Path), c.Preview)
				if err != nil {
					return fmt.Errorf("encrypt the preview of a file: %w", err)
				}
				k.preview = sql.NullString{String: value, Valid: true}
			}
		}
		if err := k.record(ctx, tx, t, f); err != nil {
			return err
		}
	}
	return nil
}

func number(n int) sql.NullInt64 { return sql.NullInt64{Int64: int64(n), Valid: true} }

// A Read is a file that was read for a run.
type Read struct {
	content.Content
	Name, Run string
}

// ReadFor returns the files of a session whose text was read for one of the runs, in
// order of their paths. It is one statement, none without runs.
func (l *Ledger) ReadFor(ctx context.Context, session string, runs ...string) ([]Read, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	args := make([]any, 0, len(runs)+1)
	for _, run := range runs {
		args = append(args, run)
	}
	var rows []struct {
		Path      string         `db:"path"`
		Run       string         `db:"run"`
		Pages     int            `db:"page_count"`
		Words     int            `db:"word_count"`
		Truncated int            `db:"truncated"`
		Preview   sql.NullString `db:"preview"`
	}
	err := l.db.Select(ctx, &rows, `SELECT path, run, coalesce(page_count, 0) AS page_count, word_count, truncated, preview FROM attachments
		WHERE run IN (VALUES `+store.Tuples(len(runs), 1)+`) AND session_id = $`+strconv.Itoa(len(runs)+1)+` AND word_count IS NOT NULL ORDER BY path`, append(args, session)...)
	if err != nil {
		return nil, fmt.Errorf("files of a conversation: %w", err)
	}
	out := make([]Read, len(rows))
	for i, r := range rows {
		out[i] = Read{content.Content{Pages: r.Pages, Words: r.Words, Truncated: r.Truncated != 0}, nameOf(r.Path), r.Run}
		if out[i].Preview, err = l.open(r.Path, r.Preview.String); err != nil && !errors.Is(err, sealed.ErrDamaged) {
			return nil, err
		}
	}
	return out, nil
}

// ForgetSession forgets what was read of the files of a session that is deleted. The
// files stay.
func (l *Ledger) ForgetSession(ctx context.Context, tx *store.Tx, session string) error {
	_, err := tx.Exec(ctx, `UPDATE attachments SET page_count = NULL, word_count = NULL, truncated = NULL, preview = NULL WHERE session_id = $1`, session)
	return err
}

// open returns a preview; "" without a box.
func (l *Ledger) open(path, value string) (string, error) {
	if l.box == nil || value == "" {
		return "", nil
	}
	text, err := l.box.Open(place(path), value)
	if err != nil {
		return "", fmt.Errorf("decrypt the preview of a file: %w", err)
	}
	return text, nil
}

// nameOf returns a stored file's name without the tag that Keep put before it.
func nameOf(at string) string {
	name := path.Base(at)
	if tag, rest, ok := strings.Cut(name, "-"); ok && len(tag) == 2*tagSize {
		return rest
	}
	return name
}
