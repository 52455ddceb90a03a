package queue

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Platforms deliver in parts what a user sends at once: each picture of an album
// and each forward is a message, and a long text is split. Parts within burstGap
// of each other, by the time of the platform, become one turn in every busy
// mode: the first waits until burstWait after the last, or until a part that
// ends the burst.
const (
	burstGap   = time.Second
	burstWait  = time.Second
	maxBursts  = 1024 // lanes remembered as having one open
	burstsKept = 10   // parts; further ones are another turn
)

// burstKind returns the kind of burst that in may belong to, and whether a
// further part may follow. A message right after a long text continues it.
func burstKind(in *core.Inbound) (kind string, more bool) {
	switch {
	case in.Album != "":
		return "album:" + in.Album + "#", true
	case in.Forwarded():
		return "forward:", true
	}
	return "text:", in.Long
}

// bursts knows the lanes with an open burst. It is safe for concurrent use.
type bursts struct {
	clock core.Clock

	mu    sync.Mutex
	lanes map[string]time.Time // when a burst was opened; at most maxBursts
}

// open records that a burst is open in the lane.
func (b *bursts) open(lane string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lanes) >= maxBursts || b.lanes == nil {
		b.lanes = map[string]time.Time{} // a part that comes just now is another turn
	}
	b.lanes[lane] = b.clock.Now()
}

// isOpen reports whether a burst is open in the lane.
func (b *bursts) isOpen(lane string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, known := b.lanes[lane]
	return known && b.clock.Now().Sub(at).Abs() < time.Minute
}

// join adds in to the open burst of its lane, or opens one. It reports whether in
// is a further part, which does not count against the rate.
func (b *bursts) join(ctx context.Context, tx *store.Tx, in *core.Inbound, r *row) (bool, error) {
	kind, more := burstKind(in)
	if !more && !b.isOpen(r.lane) {
		return false, nil
	}
	var first struct {
		Burst string `db:"burst"`
		Sent  string `db:"sent"`
		Parts int    `db:"parts"`
	}
	err := tx.Get(ctx, &first, `SELECT burst, max(sent_at) AS sent, count(*) AS parts FROM inbox
		WHERE lane = $1 AND state IN ('ready', 'limited') AND sender = $2 AND burst <> '' AND run = '' GROUP BY burst ORDER BY max(seq) DESC LIMIT 1`, r.lane, in.From.ID)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return false, err
	}
	if err == nil && first.Parts < burstsKept && strings.HasPrefix(first.Burst, kind) {
		sent, err := core.ParseStamp(first.Sent)
		if err != nil {
			return false, err
		}
		if gap := in.At.Sub(sent); gap <= burstGap && gap >= -burstGap {
			r.burst, r.free = first.Burst, true
			return true, prolong(ctx, tx, r, more)
		}
	}
	if more {
		r.burst = kind + in.UpdateID
		b.open(r.lane)
	}
	return false, nil
}

// ofOurAlbum reports whether in belongs to an album addressed to the bot. In a
// group only the picture with the caption shows this.
func (q *Queue) ofOurAlbum(ctx context.Context, tx *store.Tx, in *core.Inbound) (ours bool, err error) {
	lane, err := q.moved.Of(ctx, tx, in)
	if err != nil || !q.bursts.isOpen(lane) {
		return false, err
	}
	kind, _ := burstKind(in)
	err = tx.Get(ctx, &ours, `SELECT EXISTS (SELECT 1 FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND sender = $2 AND substr(burst, 1, length($3)) = $3)`,
		lane, in.From.ID, kind)
	return ours, err
}

// prolong delays a burst until a further part may have arrived, or makes it due
// at once after its last part.
func prolong(ctx context.Context, tx *store.Tx, r *row, more bool) error {
	due := tx.Time()
	if more {
		due = due.Add(burstWait)
	}
	n, err := tx.Exec(ctx, `UPDATE inbox SET due = $1 WHERE lane = $2 AND state IN ('ready', 'limited') AND state = 'limited' AND burst = $3 AND run = '' AND due < $4`,
		core.Stamp(due), r.lane, r.burst, core.Stamp(tx.Time().Add(2*burstWait))) // what waits for the rate waits on
	if err != nil || n == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE lane SET not_before = $1 WHERE key = $2 AND owner = ''`, core.Stamp(due), r.lane)
	return err
}
