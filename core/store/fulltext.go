package store

import (
	"context"

	"gatehouse/core/store/fulltext"
)

// Match returns the condition that a row of the full-text table has every term (and
// none with Not), and its arguments, the first of which is $first. The table is one of SQLite's
// module fts5; on PostgreSQL it is a plain one with texts from Words.
func (d *DB) Match(table string, terms []fulltext.Term, first int) (cond string, args []any) {
	return d.engine.match(table, terms, first)
}

// Words returns a text of tokens with spaces between them as a full-text table
// stores it.
func (t *Tx) Words(text string) string { return t.db.engine.words(text) }

// EmptyWords forgets everything that the table session_words has, at once.
func (t *Tx) EmptyWords(ctx context.Context) error {
	_, err := t.Exec(ctx, t.db.engine.emptyWords)
	return err
}

// Rank returns the column of a full-text table by which Match's rows are sorted, the
// best first. PostgreSQL knows no rank: there the oldest are first.
func (d *DB) Rank() string { return d.engine.rank }

// MergeWords removes what deleted rows have left in the indexes of the full-text
// tables: it rewrites them in many short transactions, between which others commit.
// Otherwise it stays in the file until later merges, though no search finds it.
func (d *DB) MergeWords(ctx context.Context) error {
	for _, statements := range d.engine.mergeWords {
		if err := d.mergeWords(ctx, statements); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) mergeWords(ctx context.Context, statements [2]string) error {
	for step := 0; ; step = 1 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		did := 0
		err := d.Tx(ctx, func(tx *Tx) error {
			var before, after int
			err := tx.Get(ctx, &before, `SELECT total_changes()`)
			if err == nil {
				_, err = tx.Exec(ctx, statements[step])
			}
			if err == nil {
				err = tx.Get(ctx, &after, `SELECT total_changes()`)
			}
			did = after - before
			return err
		})
		if err != nil || step > 0 && did < 2 { // FTS5 has no more to merge
			return err
		}
	}
}
