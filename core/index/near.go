package index

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/transcript/words"
)

// Chunks returns the numbers of the chunks of all sessions that q chooses, ascending; nil
// where there are more than most.
func (x *Index) Chunks(ctx context.Context, q Query, most int) ([]int64, error) {
	c := store.Conditions{}
	q.Where(&c)
	c.And("c.content_type = 'session'")
	list := []int64{}
	err := x.db.Select(ctx, &list, fmt.Sprintf(`SELECT c.n FROM sessions s JOIN chunks c ON c.content_id = s.id WHERE %s LIMIT %d`, strings.Join(c.Where, " AND "), most+1), c.Args...)
	if err != nil {
		return nil, fmt.Errorf("search sessions: %w", err)
	}
	if len(list) > most {
		return nil, nil
	}
	slices.Sort(list)
	return list, nil
}

// Among returns those of the chunks with the numbers chosen that are of sessions which q
// chooses, in their order.
func (x *Index) Among(ctx context.Context, q Query, chosen []int64) ([]int64, error) {
	rows, err := x.rows(ctx, q, chosen)
	list := make([]int64, len(rows))
	for i, r := range rows {
		list[i] = r.ID
	}
	return list, err
}

// rows returns the chunks of Among.
func (x *Index) rows(ctx context.Context, q Query, chosen []int64) (rows []hitRow, err error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	c := store.Conditions{}
	q.Where(&c)
	c.And("c.content_type = 'session' AND c.n IN (" + numbers(chosen) + ")")
	err = x.db.Select(ctx, &rows, `SELECT `+hitColumns+`, 1 AS fits FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id JOIN sessions s ON s.id = c.content_id WHERE `+strings.Join(c.Where, " AND "), c.Args...)
	if err != nil {
		return nil, fmt.Errorf("search sessions: %w", err)
	}
	place := make(map[int64]int, len(chosen))
	for i, n := range chosen {
		place[n] = i
	}
	core.Sort(rows, func(a, b hitRow) int { return place[a.ID] - place[b.ID] })
	return rows, nil
}

func numbers(list []int64) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(out, ",")
}

// At returns a hit for each session of which one of the chosen chunks is, in their order,
// as Find does: those that q chooses and q.Heads returns. Their messages need not have the
// words of q, but each phrase and nothing that q excludes. What has changed in a
// transcript is omitted.
func (x *Index) At(ctx context.Context, q Query, phrases [][]string, chosen []int64) ([]Hit, error) {
	rows, err := x.rows(ctx, q, chosen)
	if err != nil {
		return nil, err
	}
	heads, err := q.headsOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	must, has := words.Query{Terms: phrases, Not: q.Words.Not}, words.Query{Terms: q.Words.Terms}
	var out []Hit
	seen := map[string]bool{} // at most one for each of chosen
	for _, r := range rows {
		head, there := heads[r.Session]
		if !there || seen[r.Session] {
			continue
		}
		hit, whole, piece := x.passage(r, head)
		if _, _, ok := must.Find(whole); !ok || piece == "" || !q.within(hit.At, r.Used) {
			continue
		}
		seen[r.Session] = true
		hit.Session, hit.Excerpt = r.Session, has.ExcerptOfAny(piece, excerptLen)
		out = append(out, hit)
	}
	return out, nil
}

// passage returns where a chunk is, the text of its message, and the piece of it.
func (x *Index) passage(r hitRow, head Head) (hit Hit, whole, piece string) {
	if r.Field == ofHead {
		whole = headText(head.Title, head.Tags)
		return Hit{In: "title"}, whole, whole
	}
	raw, err := x.lineOf(r)
	if err != nil {
		return Hit{}, "", ""
	}
	text, line := transcript.Searched(raw)
	hit = Hit{In: "text", Message: line.UUID, Role: line.Type, At: lines.LineTime(&line)}
	if pieces := lines.Pieces(text); r.Piece < len(pieces) {
		return hit, text, pieces[r.Piece]
	}
	return hit, "", ""
}

// A Place is where the text of a chunk of a session is.
type Place struct {
	Session string
	File    string // the transcript
	Field   string // of the chunk
	Index   int64  // in the field
	Length  int64  // of the message's line
	Piece   int    // of the message, from 0
}

// Text returns the text of a chunk; "" where it is not there any more, so that Fill reads
// the transcript again.
func (x *Index) Text(ctx context.Context, p Place) (string, error) {
	r := hitRow{Session: p.Session, File: p.File, Field: p.Field, At: p.Index - int64(p.Piece), Length: p.Length, Piece: p.Piece}
	head, err := Head{}, error(nil)
	if p.Field == ofHead {
		head, err = x.sessions.Head(ctx, x.db, p.Session)
	}
	if core.KindOf(err) == core.NotFound {
		return "", nil // deleted since
	}
	if err != nil {
		return "", err
	}
	if _, _, text := x.passage(r, head); text != "" {
		return text, nil
	}
	return "", x.outdated(ctx, p.Session)
}
