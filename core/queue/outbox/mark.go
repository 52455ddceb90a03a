package outbox

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue/flight"
	"gatehouse/core/store"
)

// A marked reply is stored as sending, and its attempt is recorded.
type marked struct {
	core.Outgoing
	flight *flight.Send // nil: not limited in time
	place  place
	at     time.Time // before the commit of the mark, by the machine's clock
	tried  time.Time // when it was marked, by the store's clock; zero for one that is marked as it is posted
}

func newMarked(out core.Outgoing, f *flight.Send, p place) marked {
	if f != nil {
		out.Flight = f
	}
	return marked{Outgoing: out, flight: f, place: p, at: time.Now()}
}

// stale reports whether another gateway may have taken the place of this one and decided on the row (package nodes): so
// much time has passed since the mark that this one was frozen, or it is cut off. On SQLite none does that. The
// time while a machine is suspended counts.
func (b *Outbox) stale(m *marked) bool {
	if !store.OnServer(b.db.Path()) {
		return false
	}
	return b.o.Cut != nil && b.o.Cut() || max(time.Since(m.at), time.Now().Round(0).Sub(m.at.Round(0))) > maxMark
}

// unrecord frees the record of a mark that was not committed.
func (m *marked) unrecord() {
	if m != nil {
		m.flight.Release()
	}
}

// mark marks a row as sending. It returns nil for one that cannot be read, which fails, and
// for one that needs no request, which is settled as sent.
func (b *Outbox) mark(ctx context.Context, tx *store.Tx, r *outRow, key chatKey, p place) (*marked, error) {
	out, err := b.outgoing(ctx, tx, r, r.to(key))
	if err != nil {
		// It will not be readable later either, and must not hold its chat.
		b.o.Log.ErrorContext(ctx, "a reply cannot be read", "row", r.Seq, "err", err)
		tx.OnCommit(func() { b.o.Ring(core.TopicQueue); b.wakeChat(key) })
		_, err = tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = 'the stored reply cannot be read' WHERE seq = $1`, r.Seq)
		return nil, err
	}
	if done, err := b.needless(ctx, tx, out); done || err != nil {
		return nil, err
	}
	begun := core.Stamp(tx.Time())
	if r.Error == askedAgain {
		begun = r.Begun
	}
	// Recorded before the commit: a row that is found sending has a record.
	f, err := b.o.Flight.Mark(flight.Mark{Seq: r.Seq, Epoch: r.Epoch, Attempt: r.Attempts + 1})
	if err != nil {
		return nil, err
	}
	m := newMarked(*out, f, p)
	m.tried = tx.Time()
	_, err = tx.Exec(ctx, `UPDATE outbox SET state = 'sending', attempts = attempts + 1, replaces = $1, sent_at = $2 WHERE seq = $3`, out.Replaces, begun, r.Seq)
	return &m, err
}
