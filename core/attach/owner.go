package attach

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Record stores the owner of kept files and, once it is known, the session and
// run that they came to. Files without a path are skipped.
func Record(ctx context.Context, tx *store.Tx, user int64, session, run string, files []core.File) error {
	for _, f := range files {
		if err := (known{}).record(ctx, tx, Turn{user, session, run}, f); err != nil {
			return err
		}
	}
	return nil
}

// known are the columns with what was read of a file.
type known struct {
	pages, words, truncated sql.NullInt64
	preview                 sql.NullString
}

func (k known) record(ctx context.Context, tx *store.Tx, t Turn, f core.File) error {
	if f.Path == "" {
		return nil
	}
	n, err := tx.Exec(ctx, `INSERT INTO attachments (path, user_id, session_id, run, at, size, page_count, word_count, truncated, preview)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (path) DO NOTHING`,
		f.Path, t.User, t.Session, t.Run, core.Stamp(tx.Time()), f.Size, k.pages, k.words, k.truncated, k.preview)
	if err == nil && n == 0 {
		_, err = tx.Exec(ctx, `UPDATE attachments SET session_id = $2, run = $3, page_count = $4, word_count = $5, truncated = $6, preview = $7 WHERE path = $1 AND run = ''`,
			f.Path, t.Session, t.Run, k.pages, k.words, k.truncated, k.preview)
	} else if err == nil {
		err = use(ctx, tx, t.User, f.Size)
	}
	if err != nil {
		return fmt.Errorf("record the owner of a file: %w", err)
	}
	return nil
}

// Merge makes the files of one user another's.
func (l *Ledger) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	if _, err := tx.Exec(ctx, `UPDATE attachments SET user_id = $1 WHERE user_id = $2`, to, from); err != nil {
		return fmt.Errorf("give files: %w", err)
	}
	var bytes int64
	err := tx.Get(ctx, &bytes, `DELETE FROM attachment_use WHERE user_id = $1 RETURNING bytes`, from)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = use(ctx, tx, to, bytes)
	}
	if err != nil {
		return fmt.Errorf("give files: %w", err)
	}
	return nil
}

// Tables returns the tables that keep data of users.
func (l *Ledger) Tables() []string { return []string{"attachments", "attachment_use"} }

// Forget deletes the rows of the user's files, at most r.Rows of them before
// the last transaction; the files themselves are deleted by the caller.
func (l *Ledger) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User == 0 || !r.Last && r.Rows <= 0 {
		return nil
	}
	query, args := `SELECT path FROM attachments WHERE user_id = $1 ORDER BY path`, []any{r.User}
	if !r.Last {
		query, args = `SELECT path FROM attachments WHERE user_id = $1 LIMIT $2`, []any{r.User, r.Rows}
	}
	var paths []string
	if err := tx.Select(ctx, &paths, query, args...); err != nil {
		return fmt.Errorf("forget files: %w", err)
	}
	for _, path := range paths {
		if _, err := tx.Exec(ctx, `DELETE FROM attachments WHERE path = $1`, path); err != nil {
			return fmt.Errorf("forget files: %w", err)
		}
	}
	r.Files = append(r.Files, paths...)
	if !r.Last {
		r.Removed(len(paths), len(paths) == r.Rows)
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM attachment_use WHERE user_id = $1`, r.User); err != nil {
		return fmt.Errorf("forget files: %w", err)
	}
	return nil
}

// Exports returns the statements of an export. Previews are decrypted.
func (l *Ledger) Exports() []store.Export {
	return []store.Export{
		{Name: "files", Query: `SELECT path, session_id, at, page_count, word_count, truncated, preview FROM attachments WHERE user_id = $1 ORDER BY at DESC LIMIT $2`,
			Open: func(row map[string]any) error {
				at, _ := row["path"].(string)
				value, _ := row[column].(string)
				text, err := l.open(at, value)
				if row[column] = nil; text != "" {
					row[column] = text
				}
				return err
			}},
	}
}

// FilesOf returns up to 500 files that came with a user's messages, in order of
// their names, from behind after on.
func (l *Ledger) FilesOf(ctx context.Context, user int64, after string) (paths []string, err error) {
	err = l.db.Select(ctx, &paths, `SELECT path FROM attachments WHERE user_id = $1 AND path > $2 ORDER BY path LIMIT 500`, user, after)
	return paths, err
}
