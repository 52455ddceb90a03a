// Package fulltext writes conditions on tables that are searched for words.
package fulltext

import (
	"strconv"
	"strings"
)

// A Term is consecutive tokens of one of the columns of a full-text table, in the
// form of the index's tokenizer: letters, marks and digits.
type Term struct {
	Columns []string
	Words   []string
	Any     []string // in place of Words: one of these, each tokens with spaces between them
	Begins  bool     // the last token, of each of Any, may be a prefix
	Not     bool     // a row must not have it; at least one other term is not Not
	Alone   bool     // no other column has such tokens, so that FTS5 need not look for the column
}

// FTS5 returns the condition that a row of a table of SQLite's module fts5 matches terms,
// and its arguments, the first of which is $first.
func FTS5(table string, terms []Term, first int) (string, []any) {
	var has, not []string
	for _, t := range terms {
		expr := t.fts5()
		if !t.Alone {
			expr = "{" + strings.Join(t.Columns, " ") + "} : " + expr
		}
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
			list = append(list, Term{Words: []string{word}, Begins: t.Begins}.fts5())
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

// Like is FTS5 for a plain table, in which each text has spaces around its tokens.
func Like(table string, terms []Term, first int) (cond string, args []any) {
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
		list = append(list, Term{Words: []string{word}, Begins: t.Begins}.patterns()...)
	}
	return list
}
