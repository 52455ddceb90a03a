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
	for _, table := range d.engine.merged {
		if _, err := d.mergeWords(ctx, table, -100, d.Tx); err != nil {
			return err
		}
		for more := true; more; {
			var err error
			if more, err = d.mergeWords(ctx, table, 100, d.Tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// MergeSome merges up to pages pages of a full-text table's index, where transactions have
// left many parts: none of them does it itself. It reports whether there may be more to do.
func (d *DB) MergeSome(ctx context.Context, table string, pages int) (more bool, err error) {
	if len(d.engine.merged) == 0 {
		return false, nil
	}
	return d.mergeWords(ctx, table, pages, d.TxSoon)
}

func (d *DB) mergeWords(ctx context.Context, table string, pages int, run func(context.Context, func(*Tx) error) error) (more bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	err = run(ctx, func(tx *Tx) (err error) {
		more, err = fulltext.Merge(ctx, tx, table, pages)
		return err
	})
	return more, err
}
