package index

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/lines"
)

// timed reports whether q asks for hits of a time.
func (q *Query) timed() bool { return !q.After.IsZero() || !q.Before.IsZero() }

// within reports whether q asks for a hit of this time in a session that was last used then;
// that counts for a hit without a time.
func (q *Query) within(at time.Time, used string) bool {
	if at.IsZero() {
		at = core.TimeOf(used)
	}
	return (q.After.IsZero() || !at.Before(q.After)) && (q.Before.IsZero() || at.Before(q.Before))
}

// covers reports whether hits of the time of h are asked for, which it reads in the transcript.
func (l *lookup) covers(h *hitRow) bool {
	if !l.f.timed() {
		return true
	}
	if h.Field == ofHead {
		return l.f.within(time.Time{}, h.Used)
	}
	raw, err := l.file.lineOf(l.x, *h)
	if err != nil {
		return true // answers has the transcript read again
	}
	_, line := transcript.Searched(raw)
	return l.f.within(lines.LineTime(&line), h.Used)
}

// freshThen is fresh where times are asked for: a newer hit of another time was not shown.
func (l *lookup) freshThen(ctx context.Context, match string, args []any) (bool, error) {
	var rows []hitRow
	err := l.x.db.Select(ctx, &rows, fmt.Sprintf(`SELECT %s, 1 AS fits
		FROM (SELECT rowid AS id FROM session_words WHERE rowid >= $1 AND rowid <= $2 AND %s ORDER BY rowid DESC LIMIT %d) h
		JOIN chunks c ON c.n = h.id JOIN index_manifest m ON m.content_id = c.content_id JOIN sessions s ON s.id = c.content_id`, hitColumns, match, maxHits),
		append([]any{l.was, l.top}, args...)...)
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if l.covers(&rows[i]) {
			return false, err
		}
	}
	return true, err
}
