package outbox

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// maxDeclined is how long a reply is tried that the platform answers by failures of its own, without
// the time in which it is not tried or gets no such answer. It holds its chat for as long.
const maxDeclined = 24 * time.Hour

// declined notes in r, for the caller to store, that the try out was declined, and ends the reply after
// maxDeclined: it fails, so that the operator sees it and the chat's later replies are sent. ended reports
// whether it did. doubt is whether an earlier try may have arrived.
func (b *Outbox) declined(ctx context.Context, tx *store.Tx, out *marked, d core.Delivery, r *outRow, doubt bool) (ended bool, err error) {
	if !d.Declined {
		return false, nil // without an answer it is the connection that fails, for every reply
	}
	r.excuse(out.tried) // it was due before where the gateway was off, or waited with the whole bot
	switch since := core.TimeOf(r.Declined); {
	case since.IsZero() || since.After(tx.Time()): // or the clock was set back
		r.Declined = core.Stamp(tx.Time())
		return false, nil
	case tx.Time().Sub(since) < maxDeclined:
		return false, nil
	}
	b.o.Log.WarnContext(ctx, "a reply was given up: the platform has declined it for a day", "bot", out.Bot, "row", out.Seq, "reason", d.Reason)
	if out.Deletes() { // of a preview, which stays in the chat
		_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'sent', sent_at = $1, error = '' WHERE seq = $2`, core.Stamp(tx.Time()), out.Seq)
		return true, err
	}
	return true, b.failRow(ctx, tx, out.Seq, "tried for 24 hours: "+d.Reason, doubt)
}

// excuse has the time from when the last try was due until a later time not count as time in which the
// reply is declined.
func (r *outRow) excuse(until time.Time) {
	since, due := core.TimeOf(r.Declined), core.TimeOf(r.NotUntil)
	if lost := until.Sub(due); !since.IsZero() && !due.IsZero() && lost > 0 {
		r.Declined = core.Stamp(since.Add(lost))
	}
}

// failRow ends a reply that was not taken. The next time that it is sent it is tried as long as at first.
func (b *Outbox) failRow(ctx context.Context, tx *store.Tx, seq int64, why string, doubt bool) error {
	why = core.CutRunes(why, 250)
	if doubt {
		why += inDoubt
	}
	tx.OnCommit(func() { b.o.Ring(core.TopicQueue) })
	_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = $1, not_before = '', declined_at = '' WHERE seq = $2`, why, seq)
	return err
}

// RetryNow tries a reply now that waits for its next try. It returns NotFound when the reply does not
// wait for one, and Conflict when the platform has asked to wait with the reply, its chat or its bot, which is
// longer than the outbox itself does.
func (b *Outbox) RetryNow(ctx context.Context, seq int64, by core.Actor) error {
	return b.decideRetried(ctx, seq, by, "queue.retry_send", func(tx *store.Tx, r *retriedRow) error {
		own := core.TimeOf(r.NotUntil).Sub(tx.Time())
		if own >= maxPause { // the clock was set back
			own = 0
		}
		if wait := max(own, b.wait(r.to(r.key()))); wait > maxRetryPause {
			return core.Errorf(core.Conflict, "the platform has asked to wait: the reply %d is tried in %v", seq, wait.Round(time.Second))
		}
		_, err := tx.Exec(ctx, `UPDATE outbox SET not_before = $1 WHERE seq = $2`, core.Stamp(tx.Time()), seq)
		return err
	})
}

// GiveUp fails a reply that waits for its next try: it can be sent again later, and those of its chat that
// wait for it are sent. It returns NotFound when the reply does not wait for a next try.
func (b *Outbox) GiveUp(ctx context.Context, seq int64, by core.Actor) error {
	return b.decideRetried(ctx, seq, by, "queue.give_up", func(tx *store.Tx, r *retriedRow) error {
		doubt := r.Error == mayHaveArrived || r.Error == askedAgain
		why := "given up in the panel"
		if !doubt {
			why += "; the last try: " + r.Error
		}
		return b.failRow(ctx, tx, seq, why, doubt && (r.Error == mayHaveArrived || r.Replaces == ""))
	})
}

type retriedRow struct {
	outRow
	Bot  string `db:"bot"`
	Chat string `db:"chat"`
}

func (r *retriedRow) key() chatKey { return chatKey{r.Bot, r.Chat} }

// decideRetried runs act on a reply that waits for its next try.
func (b *Outbox) decideRetried(ctx context.Context, seq int64, by core.Actor, action string, act func(*store.Tx, *retriedRow) error) error {
	none := core.Errorf(core.NotFound, "the reply %d does not wait for another try: it may have been sent", seq)
	return b.decide(ctx, seq, by, action, none, func(tx *store.Tx) (chatKey, error) {
		var r retriedRow
		err := tx.Get(ctx, &r, `SELECT seq, bot, chat, thread, place, state, error, not_before, replaces FROM outbox WHERE seq = $1 AND state IN ('ready', 'sending') AND error <> ''`, seq)
		if err == nil && r.State != "ready" {
			err = core.Errorf(core.Conflict, "the reply %d is being sent right now: look again in a moment", seq)
		}
		if err != nil {
			return chatKey{}, err
		}
		return r.key(), act(tx, &r)
	})
}
