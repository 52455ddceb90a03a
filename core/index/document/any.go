package document

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
	"gatehouse/core/store/fulltext"
	"gatehouse/core/transcript/words"
)

const (
	mostAny  = 32  // words of Any
	perFile  = 8   // passages that are read for one file
	mostFile = 100 // the largest limit of Any
)

// Any returns the files that have, in their passages, title or path, words that begin with
// one of stems: the best by BM25 first, at most limit (up to 100), among those that r may
// read.
func (s *Store) Any(ctx context.Context, stems []string, r search.Reader, limit int) (paths []string, err error) {
	var q words.Query
	for _, stem := range stems[:min(len(stems), mostAny)] {
		q.Add(stem)
	}
	l := lookup{s: s, r: r}
	term := fulltext.Term{Columns: columns, Begins: true, Alone: true}
	for _, stem := range slices.Concat(q.Terms...) {
		if t := l.word([]string{stem}); l.all() {
			term.Any = append(term.Any, stem)
		} else {
			term.Any = append(term.Any, t.Any...)
		}
	}
	if len(term.Any) == 0 || limit <= 0 || r.Trust < core.Sandboxed {
		return nil, nil
	}
	table := l.table()
	match, args := s.db.Match(table, []fulltext.Term{term}, 1)
	c := store.Conditions{Where: []string{match}, Args: args}
	limit = min(limit, mostFile)
	var list []string
	err = s.db.Select(ctx, &list, fmt.Sprintf(`SELECT m.source_path FROM %s CROSS JOIN chunks c CROSS JOIN index_manifest m
		WHERE %s AND c.n = %[1]s.rowid AND m.content_id = c.content_id ORDER BY %[1]s.%[3]s LIMIT %[4]d`, table, c.Where[0], s.db.Rank(), limit*perFile), c.Args...)
	if err != nil {
		return nil, fmt.Errorf("search documents for any word: %w", err)
	}
	for _, path := range list {
		if len(paths) < limit && !slices.Contains(paths, path) && r.MayRead(path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
