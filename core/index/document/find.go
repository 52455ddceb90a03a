package document

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
	"gatehouse/core/store/fulltext"
)

// Limits of Find.
const (
	mostRows   = 2000 // passages that one search returns; documents beyond them are not found
	mostRanked = 8000 // passages with all words; where there are more, rank means little and costs much
	excerptLen = 160  // characters
	mostMarks  = 32   // of one excerpt
	minBegin   = 3    // characters of the last word, to be looked for as a prefix
)

// Find returns the documents and entries of journals, or those of q.Types, that have all words of q in one passage, its title and
// its path, the best by BM25 first, one hit for each (search.Source). With q.Near it joins
// them with those whose passages are nearest to it, which need not have the words, but
// what is in quotes. Words that more
// than 8,000 passages have are not ranked: the documents indexed last come first.
// Without words it returns those that the rest of q asks for, the newest first. Of a reader below trust
// vault only their own directory and what is open to guests is searched at all; files
// that r.MayRead refuses are no hits.
func (s *Store) Find(ctx context.Context, q search.Asked, r search.Reader, limit int, cursor string) (hits []search.Hit, next string, err error) {
	at, err := parsePlace(cursor)
	if err != nil || r.Trust < core.Sandboxed || q.Project != "" {
		return nil, "", err
	}
	l := lookup{s: s, q: q, r: r, at: at}
	l.q.Words.Begins = at.Begins
	var reading sync.WaitGroup
	reading.Go(func() { l.byMeaning, l.unmeant = l.near(ctx) }) // it takes longer than the search by words
	l.meant = reading.Wait
	defer reading.Wait()
	hits, next, err = l.page(ctx, limit)
	if err == nil && !l.worded && cursor == "" && l.canBegin() {
		l.q.Words.Begins, l.at.Begins = true, true
		hits, next, err = l.page(ctx, limit)
	}
	if err != nil {
		return nil, "", fmt.Errorf("search documents: %w", err)
	}
	return hits, next, nil
}

// A place is how far the pages have come: how many documents were shown.
type place struct {
	Shown  int
	Begins bool // the last word is looked for as a prefix
}

func (p place) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "d %d %t", p.Shown, p.Begins))
}

func parsePlace(cursor string) (p place, err error) {
	if cursor == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	fields := strings.Fields(string(raw))
	if err == nil && len(fields) == 3 && fields[0] == "d" {
		if p.Shown, err = strconv.Atoi(fields[1]); err == nil {
			p.Begins, err = strconv.ParseBool(fields[2])
		}
		if err == nil && p.Shown > 0 && p.Shown <= mostRows {
			return p, nil
		}
	}
	return place{}, core.Errorf(core.Invalid, "the cursor is not of this search: begin again without one")
}

// A lookup is one page being looked for.
type lookup struct {
	s  *Store
	q  search.Asked
	r  search.Reader
	at place

	meant     func()  // waits for what follows
	byMeaning []found // passages near to what q means, at most mostNear
	unmeant   error   // why there are none
	worded    bool    // the last page has documents that were found by their words
}

func (l *lookup) canBegin() bool {
	terms := l.q.Words.Terms
	if len(terms) == 0 {
		return false
	}
	last := terms[len(terms)-1]
	return len([]rune(last[len(last)-1])) >= minBegin
}

// A found is one passage that may be a hit.
type found struct {
	N       int64  `db:"n"`
	Content string `db:"content_id"`
	Path    string `db:"source_path"`
}

// page returns the documents behind those that were shown. The ranking is read again
// from its beginning: it is short, and so no document is on two pages for its passages.
func (l *lookup) page(ctx context.Context, limit int) ([]search.Hit, string, error) {
	n := min(mostRows, 8*(l.at.Shown+limit+1))
	if l.q.Near != nil {
		n = max(n, mostFused) // the same ranks on each page
	}
	for ; ; n = min(mostRows, 4*n) {
		rows, err := l.rows(ctx, n)
		if l.meant(); err == nil {
			err = l.unmeant
		}
		if err != nil {
			return nil, "", err
		}
		l.worded = slices.ContainsFunc(rows, func(row found) bool { return l.r.MayRead(row.Path) })
		chosen, more := l.choice(fuse(rows, l.byMeaning), limit)
		if more || len(rows) < n || n == mostRows {
			hits, err := l.hits(ctx, chosen)
			next := ""
			if more {
				next = place{l.at.Shown + limit, l.at.Begins}.String()
			}
			return hits, next, err
		}
	}
}

// choice returns limit documents behind those that were shown, and whether rows has more.
func (l *lookup) choice(rows []found, limit int) (chosen []found, more bool) {
	seen := map[string]bool{} // at most mostRows
	for _, row := range rows {
		if seen[row.Content] || !l.r.MayRead(row.Path) {
			continue
		}
		if seen[row.Content] = true; len(seen) <= l.at.Shown {
			continue
		}
		if len(chosen) == limit {
			return chosen, true
		}
		chosen = append(chosen, row)
	}
	return chosen, false
}

// hits reads what is shown of passages. One that is gone in the meantime is no hit, nor is
// what has its number since.
func (l *lookup) hits(ctx context.Context, chosen []found) (hits []search.Hit, err error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	numbers := make([]int64, len(chosen))
	for i, row := range chosen {
		numbers[i] = row.N
	}
	var rows []shown
	err = l.s.db.Select(ctx, &rows, `SELECT c.n, coalesce(m.title, '') AS title, m.modified, c.chunk_text, c.line, c.content_type, c.content_id, coalesce(m.source_path, '') AS source_path
		FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id WHERE c.n IN (`+list(numbers)+`)`)
	if err != nil {
		return nil, err
	}
	for i, row := range chosen {
		at := slices.IndexFunc(rows, func(r shown) bool { return r.N == row.N })
		if at < 0 || rows[at].Content != row.Content || rows[at].Path != row.Path || !l.r.MayRead(row.Path) {
			continue
		}
		hit := l.hit(row, rows[at])
		hit.Cursor = place{l.at.Shown + i + 1, l.at.Begins}.String()
		hits = append(hits, hit)
	}
	return hits, nil
}

// A shown is what is shown of a passage.
type shown struct {
	Content  string `db:"content_id"`
	Path     string `db:"source_path"`
	N        int64  `db:"n"`
	Title    string `db:"title"`
	Modified string `db:"modified"`
	Text     string `db:"chunk_text"`
	Line     int    `db:"line"`
	Type     string `db:"content_type"`
}

func (l *lookup) hit(row found, r shown) search.Hit {
	excerpt := l.q.Words.ExcerptOfAny(separated(r.Text), excerptLen) // other words may be in the title
	return search.Hit{
		Type: r.Type, ID: row.Content, Title: r.Title, Path: row.Path, Line: r.Line,
		Excerpt: excerpt, Marks: l.q.Words.Marks(excerpt, mostMarks), At: timeOf(r.Modified),
	}
}

// separated returns a text with a mark behind headings and other lines that end no
// sentence, since an excerpt is one line.
func separated(text string) string {
	blocks := strings.Split(text, "\n\n")
	for i, b := range blocks[:len(blocks)-1] {
		if b = strings.TrimRight(b, " \t\n"); b != "" && !strings.ContainsAny(b[len(b)-1:], ".!?:;,") {
			blocks[i] = b + " ·"
		}
	}
	return strings.Join(blocks, "\n\n")
}

// rows returns the n best passages.
func (l *lookup) rows(ctx context.Context, n int) (rows []found, err error) {
	c, from, order := store.Conditions{}, "", ""
	if terms := l.terms(); len(terms) > 0 {
		table := l.table()
		match, args := l.s.db.Match(table, terms, 1)
		c = store.Conditions{Where: []string{match}, Args: args}
		from, order = table+" CROSS JOIN chunks c CROSS JOIN index_manifest m", table+"."+l.s.db.Rank()
		if many, err := l.many(ctx, match, args); err != nil {
			return nil, err
		} else if many {
			order = table + ".rowid DESC"
		}
		c.And("c.n = " + table + ".rowid AND m.content_id = c.content_id")
	} else {
		from = "index_manifest m JOIN chunks c ON c.content_id = m.content_id"
	}
	if len(l.q.Words.Terms) == 0 {
		c.And("c.chunk_index = 0 AND c.field = 'content' AND c.content_type <> 'session'")
		order = "m.modified DESC, m.content_id"
	}
	l.choose(&c)
	err = l.s.db.Select(ctx, &rows, fmt.Sprintf(`SELECT c.n, c.content_id, m.source_path FROM %s WHERE %s ORDER BY %s LIMIT %d`,
		from, strings.Join(c.Where, " AND "), order, n), c.Args...)
	return rows, err
}

// many reports whether more passages match than are ranked.
func (l *lookup) many(ctx context.Context, match string, args []any) (bool, error) {
	var n int
	err := l.s.db.Get(ctx, &n, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM %s WHERE %s LIMIT %d) AS few`, l.table(), match, mostRanked+1), args...)
	return n > mostRanked, err
}

// terms returns what the full-text index is asked for: words, rights and tags.
func (l *lookup) terms() (terms []fulltext.Term) {
	for i, w := range l.q.Words.Terms {
		t := l.word(w)
		t.Begins = l.q.Words.Begins && i == len(l.q.Words.Terms)-1
		terms = append(terms, t)
	}
	for _, tag := range l.q.Tags {
		terms = append(terms, l.tag(tag))
	}
	if len(terms) == 0 {
		terms = l.rights()
	}
	if len(l.q.Words.Terms) == 0 {
		return terms // what is excluded is excluded by document, see choose
	}
	for _, w := range l.q.Words.Not {
		terms = append(terms, l.without(w))
	}
	return terms
}

// choose adds the conditions that no full-text index has.
func (l *lookup) choose(c *store.Conditions) {
	if len(l.q.Words.Terms) == 0 {
		for _, w := range l.q.Words.Not {
			match, args := l.s.db.Match(l.table(), []fulltext.Term{l.word(w)}, len(c.Args)+1)
			c.Args = append(c.Args, args...)
			c.And("m.content_id NOT IN (SELECT x.content_id FROM " + l.table() + " CROSS JOIN chunks x WHERE x.n = " + l.table() + ".rowid AND " + match + ")")
		}
	}
	l.bounds(c)
}

// bounds adds the conditions on the content's type, directory and time.
func (l *lookup) bounds(c *store.Conditions) {
	if len(l.q.Types) == 1 {
		c.And("c.content_type = ?", l.q.Types[0])
	}
	if l.q.Folder != "" { // all paths that begin with the directory and a slash
		c.And("m.source_path >= ? AND m.source_path < ?", l.q.Folder+"/", l.q.Folder+"0")
	}
	if !l.q.After.IsZero() {
		c.And("m.modified >= ?", stampOf(l.q.After))
	}
	if !l.q.Before.IsZero() {
		c.And("m.modified < ?", stampOf(l.q.Before))
	}
}
