package store

import (
	"context"
	"strconv"
	"strings"
)

// A Term is consecutive tokens of one of the columns of a full-text table, in the
// form of the index's tokenizer: letters, marks and digits.
type Term struct {
	Columns []string
	Words   []string
	Begins  bool // the last token may be a prefix
}

// Match returns the condition that a row of the full-text table has every term,
// and its arguments, the first of which is $first. The table is one of SQLite's
// module fts5; on PostgreSQL it is a plain one with texts from Words.
func (d *DB) Match(table string, terms []Term, first int) (cond string, args []any) {
	return d.engine.match(table, terms, first)
}

// Words returns a text of tokens with spaces between them as a full-text table
// stores it.
func (t *Tx) Words(text string) string { return t.db.engine.words(text) }

// EmptyWords forgets everything that the table search has, at once.
func (t *Tx) EmptyWords(ctx context.Context) error {
	_, err := t.Exec(ctx, t.db.engine.emptyWords)
	return err
}

// MergeWords removes what deleted rows have left in the index of the table search:
// it rewrites the index in many short transactions, between which others commit.
// Otherwise it stays in the file until later merges, though no search finds it.
func (d *DB) MergeWords(ctx context.Context) error {
	if len(d.engine.mergeWords) == 0 {
		return nil
	}
	for step := 0; ; step = 1 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		did := 0
		err := d.Tx(ctx, func(tx *Tx) error {
			var before, after int
			err := tx.Get(ctx, &before, `SELECT total_changes()`)
			if err == nil {
				_, err = tx.Exec(ctx, d.engine.mergeWords[step])
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

func matchFTS5(table string, terms []Term, first int) (string, []any) {
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString("{" + strings.Join(t.Columns, " ") + `} : "` + strings.ReplaceAll(strings.Join(t.Words, " "), `"`, " ") + `"`)
		if t.Begins {
			b.WriteString(" *")
		}
	}
	return table + " MATCH $" + strconv.Itoa(first), []any{b.String()}
}

var likeWord = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func matchLike(table string, terms []Term, first int) (cond string, args []any) {
	var all []string
	for _, t := range terms {
		pattern := "% " + likeWord.Replace(strings.Join(t.Words, " "))
		if !t.Begins {
			pattern += " "
		}
		args = append(args, pattern+"%")
		var one []string
		for _, c := range t.Columns {
			one = append(one, table+"."+c+" LIKE $"+strconv.Itoa(first+len(args)-1))
		}
		all = append(all, "("+strings.Join(one, " OR ")+")")
	}
	return strings.Join(all, " AND "), args
}
