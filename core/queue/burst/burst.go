// Package burst knows which messages are parts of one: platforms deliver in parts what a
// user sends at once. Each picture of an album and each forward is a message, and a long
// text is split by the sender's app.
package burst

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Parts within Gap of each other, by the time of the platform, become one turn in every
// busy mode: the first waits until Wait after the last, or until a part that ends the
// burst.
const (
	Gap  = time.Second
	Wait = time.Second

	openFor  = time.Minute
	maxOpen  = 1024 // lanes remembered as having one open
	maxParts = 10   // further ones are another turn
)

// Kind returns the kind of burst that in may belong to, which begins the burst's name, and
// whether a further part may follow. A message right after a long text continues it.
func Kind(in *core.Inbound) (kind string, more bool) {
	switch {
	case in.Album != "":
		return "album:" + in.Album + "#", true
	case in.Forwarded():
		return "forward:", true
	}
	return "text:", in.Long
}

// Bursts knows the lanes with an open burst. It is safe for concurrent use.
type Bursts struct {
	clock core.Clock

	mu    sync.Mutex
	lanes map[string]time.Time // when a burst was opened; at most maxOpen
	last  time.Time            // the newest of them
}

// New returns Bursts without an open one.
func New(clock core.Clock) *Bursts { return &Bursts{clock: clock} }

// open records that a burst is open in the lane.
func (b *Bursts) open(lane string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lanes) >= maxOpen || b.lanes == nil {
		b.lanes = map[string]time.Time{} // a part that comes just now is another turn
	}
	b.last = b.clock.Now()
	b.lanes[lane] = b.last
}

// Any reports whether a burst may be open in a lane.
func (b *Bursts) Any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock.Now().Sub(b.last).Abs() < openFor
}

// isOpen reports whether a burst is open in the lane.
func (b *Bursts) isOpen(lane string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, known := b.lanes[lane]
	return known && b.clock.Now().Sub(at).Abs() < openFor
}

// Join returns the name of the burst in lane that in is a part of, which waits or is
// opened now; "" if in is whole. further means that in is not its first part, and so does
// not count against the rate.
func (b *Bursts) Join(ctx context.Context, tx *store.Tx, in *core.Inbound, lane string) (name string, further bool, err error) {
	kind, more := Kind(in)
	if !more && !b.isOpen(lane) {
		return "", false, nil
	}
	if name, err = find(ctx, tx, in, lane); err != nil {
		return "", false, err
	}
	if name != "" {
		return name, true, prolong(ctx, tx, lane, name, more)
	}
	if more {
		name = kind + in.UpdateID
		b.open(lane)
	}
	return name, false, nil
}

// find returns the name of the burst in lane that waits for a further part and may be
// continued by in; "" for none.
func find(ctx context.Context, tx *store.Tx, in *core.Inbound, lane string) (string, error) {
	var first struct {
		Burst string `db:"burst"`
		Sent  string `db:"sent"`
		Parts int    `db:"parts"`
	}
	err := tx.Get(ctx, &first, `SELECT burst, max(sent_at) AS sent, count(*) AS parts FROM inbox
		WHERE lane = $1 AND state IN ('ready', 'limited') AND sender = $2 AND burst <> '' AND run = '' GROUP BY burst ORDER BY max(seq) DESC LIMIT 1`, lane, in.From.ID)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	kind, _ := Kind(in)
	if first.Parts >= maxParts || !strings.HasPrefix(first.Burst, kind) {
		return "", nil
	}
	sent, err := core.ParseStamp(first.Sent)
	if err != nil || in.At.Sub(sent).Abs() > Gap {
		return "", err
	}
	return first.Burst, nil
}

// Addressed reports whether in, which does not address the bot itself, continues in lane
// what does: in a group only the caption of an album, or the first part of a long text,
// shows this. A forward begins a message of its own.
func (b *Bursts) Addressed(ctx context.Context, tx *store.Tx, in *core.Inbound, lane string) (ours bool, err error) {
	kind, _ := Kind(in)
	switch {
	case !b.isOpen(lane):
		return false, nil
	case in.Album == "":
		name, err := find(ctx, tx, in, lane)
		return name != "" && kind == "text:", err
	}
	err = tx.Get(ctx, &ours, `SELECT EXISTS (SELECT 1 FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND sender = $2 AND substr(burst, 1, length($3)) = $3)`,
		lane, in.From.ID, kind)
	return ours, err
}

// prolong delays a burst until a further part may have arrived, or makes it due
// at once after its last part.
func prolong(ctx context.Context, tx *store.Tx, lane, name string, more bool) error {
	due := tx.Time()
	if more {
		due = due.Add(Wait)
	}
	n, err := tx.Exec(ctx, `UPDATE inbox SET due = $1 WHERE lane = $2 AND state IN ('ready', 'limited') AND state = 'limited' AND burst = $3 AND run = '' AND due < $4`,
		core.Stamp(due), lane, name, core.Stamp(tx.Time().Add(2*Wait))) // what waits for the rate waits on
	if err != nil || n == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE lane SET not_before = $1 WHERE key = $2 AND owner = ''`, core.Stamp(due), lane)
	return err
}
