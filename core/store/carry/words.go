package carry

import (
	"context"
	"strings"
)

// rowid is the key of a full-text table.
const rowid = "rowid"

// vocabularies returns the statements that let a connection read what SQLite's full-text
// tables have: they keep no text, but for each token its rows, columns and places. That
// restores the text as package words wrote it, its tokens with a space between them.
func vocabularies(ctx context.Context, q conn) (statements []string, err error) {
	names, err := texts(ctx, q, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'`)
	for _, name := range names {
		statements = append(statements, `CREATE VIRTUAL TABLE IF NOT EXISTS temp.`+quote(vocabulary(name))+` USING fts5vocab(main, `+quote(name)+`, 'instance')`)
	}
	return statements, err
}

func vocabulary(table string) string { return table + "_vocabulary" }

// indexed reads a full-text table of SQLite, but for rows whose passage is gone: PostgreSQL
// would delete them with it. SQLite sorts the tokens in temporary files.
func indexed(ctx context.Context, q conn, t table, each func(row []any) error) error {
	rows, err := q.QueryContext(ctx, `SELECT id, '' AS col, 0 AS at, '' AS term FROM `+quote(t.name+"_docsize")+` WHERE id IN (SELECT n FROM chunks)
		UNION ALL SELECT doc, col, "offset", term FROM temp.`+quote(vocabulary(t.name))+` WHERE doc IN (SELECT n FROM chunks) ORDER BY 1, 2, 3`)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := indexedRow{table: t}
	for rows.Next() {
		var id, at int64
		var col, term string
		if err := rows.Scan(&id, &col, &at, &term); err != nil {
			return err
		}
		if col != "" {
			found.add(col, term)
			continue
		}
		if err := found.end(each); err != nil {
			return err
		}
		found.begin(id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return found.end(each)
}

// An indexedRow is a row of a full-text table that is put together.
type indexedRow struct {
	table table
	row   []any // nil: none
	texts map[string]*strings.Builder
}

func (r *indexedRow) begin(id int64) {
	r.row = make([]any, len(r.table.columns))
	r.row[0] = id
	r.texts = map[string]*strings.Builder{}
}

func (r *indexedRow) add(col, term string) {
	b := r.texts[col]
	if b == nil {
		b = &strings.Builder{}
		r.texts[col] = b
	} else {
		b.WriteByte(' ')
	}
	b.WriteString(term)
}

func (r *indexedRow) end(each func(row []any) error) error {
	if r.row == nil {
		return nil
	}
	for i, c := range r.table.columns[1:] {
		r.row[i+1] = ""
		if b := r.texts[c.name]; b != nil {
			r.row[i+1] = b.String()
		}
	}
	return each(r.row)
}
