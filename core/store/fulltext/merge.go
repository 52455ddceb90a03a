package fulltext

import "context"

// Tables are the full-text tables of SQLite.
func Tables() []string { return []string{"session_words", "document_words", "guest_words"} }

// A Writer runs statements in one transaction.
type Writer interface {
	Get(ctx context.Context, dest any, query string, args ...any) error
	Exec(ctx context.Context, query string, args ...any) (int64, error)
}

// Merge merges up to pages pages, of 4 kB, of the index of one of Tables, where it has
// parts enough to merge, and reports whether there was something to do. With a negative
// number it begins to merge all of the index into one part, which calls with positive
// numbers go on with.
func Merge(ctx context.Context, tx Writer, table string, pages int) (did bool, err error) {
	var before, after int
	err = tx.Get(ctx, &before, `SELECT total_changes()`)
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO "+table+" ("+table+", rank) VALUES ('merge', $1)", pages)
	}
	if err == nil {
		err = tx.Get(ctx, &after, `SELECT total_changes()`)
	}
	return after-before > 1, err // the INSERT itself is one
}
