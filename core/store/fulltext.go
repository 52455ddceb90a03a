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
	Any     []string // in place of Words: one of these tokens
	Begins  bool     // the last token may be a prefix
	Not     bool     // a row must not have it; at least one other term is not Not
}

// Match returns the condition that a row of the full-text table has every term (and
// none with Not), and its arguments, the first of which is $first. The table is one of SQLite's
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

func matchFTS5(table string, terms []Term, first int) (string, []any) {
	var has, not []string
	for _, t := range terms {
		expr := "{" + strings.Join(t.Columns, " ") + "} : " + t.fts5()
		if t.Not {
			not = append(not, expr)
		} else {
			has = append(has, expr)
		}
	}
	query := strings.Join(has, " AND ")
	if len(not) > 0 {
		query = "(" + query + ") NOT (" + strings.Join(not, " OR ") + ")"
	}
	return table + " MATCH $" + strconv.Itoa(first), []any{query}
}

// fts5 returns the term's tokens as an expression of FTS5.
func (t Term) fts5() string {
	if len(t.Any) > 0 {
		var list []string
		for _, word := range t.Any {
			list = append(list, Term{Words: []string{word}}.fts5())
		}
		return "(" + strings.Join(list, " OR ") + ")"
	}
	expr := `"` + strings.ReplaceAll(strings.Join(t.Words, " "), `"`, " ") + `"`
	if t.Begins {
		expr += " *"
	}
	return expr
}

var likeWord = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func matchLike(table string, terms []Term, first int) (cond string, args []any) {
	var all []string
	for _, t := range terms {
		var one []string
		for _, pattern := range t.patterns() {
			args = append(args, pattern)
			for _, c := range t.Columns {
				one = append(one, table+"."+c+" LIKE $"+strconv.Itoa(first+len(args)-1))
			}
		}
		cond := "(" + strings.Join(one, " OR ") + ")"
		if t.Not {
			cond = "NOT " + cond
		}
		all = append(all, cond)
	}
	return strings.Join(all, " AND "), args
}

// patterns returns the patterns of which a text with the term matches one.
func (t Term) patterns() (list []string) {
	if len(t.Any) == 0 {
		pattern := "% " + likeWord.Replace(strings.Join(t.Words, " "))
		if !t.Begins {
			pattern += " "
		}
		return []string{pattern + "%"}
	}
	for _, word := range t.Any {
		list = append(list, Term{Words: []string{word}}.patterns()...)
	}
	return list
}
