package outbox

import (
	"context"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Errors of a row after an attempt with an unknown outcome.
const (
	mayHaveArrived = "sent, but the platform did not answer"
	askedAgain     = "sent, but the platform did not answer; being asked again in a way that shows it once"
)

// needsMark reports whether the next attempt of r must say that the message may have
// arrived before: the outcome of an earlier attempt is unknown, and the platform
// does not recognise the repeat.
func (b *Outbox) needsMark(tx *store.Tx, r *outRow, bot string) bool {
	return r.Error == mayHaveArrived || r.Error == askedAgain && r.Replaces == "" && !b.shownOnce(tx, bot, r.Begun)
}

// shownOnce reports whether the platform shows a message once that was first sent
// at begun and is sent again now.
func (b *Outbox) shownOnce(tx *store.Tx, bot, begun string) bool {
	at, err := core.ParseStamp(begun)
	age := tx.Time().Sub(at)
	return err == nil && age >= -slack && age < b.sender.Repeats(bot)
}

// settleSend stores the outcome of a send.
func (b *Outbox) settleSend(ctx context.Context, tx *store.Tx, m *marked, d core.Delivery) error {
	out := &m.Outgoing
	if d.Outcome == core.Sent {
		_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'sent', platform_message_id = $1, sent_at = $2, error = '' WHERE seq = $3`, d.MessageID, core.Stamp(tx.Time()), out.Seq)
		return err
	}
	var r outRow
	err := tx.Get(ctx, &r, `SELECT attempts, error, not_before, sent_at, declined_at FROM outbox WHERE seq = $1`, out.Seq)
	if errors.Is(err, store.ErrNoRows) { // its user was erased concurrently
		return nil
	}
	if err != nil {
		return err
	}
	set := func(state, reason string, wait time.Duration) error {
		if state != "ready" {
			tx.OnCommit(func() { b.o.Ring(core.TopicQueue) })
		}
		until, next := "", tx.Time().Add(wait)
		if wait > 0 {
			until = core.Stamp(next)
		}
		if !d.Declined {
			r.excuse(next)
		}
		_, err := tx.Exec(ctx, `UPDATE outbox SET state = $1, error = $2, not_before = $3, declined_at = $4 WHERE seq = $5`, state, core.CutRunes(reason, 300), until, r.Declined, out.Seq)
		return err
	}
	doubt := out.Repeat || r.Error == askedAgain && out.Replaces == ""
	reason := d.Reason
	switch {
	case out.Repeat: // an earlier, unanswered try is still in doubt
		reason = mayHaveArrived
	case r.Error == askedAgain:
		reason = askedAgain
	}
	switch d.Outcome {
	case core.NotSent:
		if ended, err := b.declined(ctx, tx, m, d, &r, doubt); ended || err != nil {
			return err
		}
		return set("ready", reason, min(time.Second<<min(r.Attempts-1, 10), maxRetryPause))
	case core.RetryAfter:
		wait := min(max(d.After, time.Second), maxPause-time.Hour)
		if d.All {
			if err := b.block(ctx, tx, out.Bot, wait); err != nil {
				return err
			}
		}
		return set("ready", reason, wait)
	case core.Refused:
		if d.MovedTo != "" && d.MovedTo != out.Chat {
			return b.moveRow(ctx, tx, out, d.MovedTo, doubt)
		}
		if d.Closed { // the replies after it would be refused, too
			if err := set("failed", closedError(d.Reason, doubt), 0); err != nil {
				return err
			}
			return b.shut(ctx, tx, out.Bot, out.Chat, d.Reason)
		}
		if d.Late {
			if err := b.notifyLate(ctx, tx, out); err != nil {
				return err
			}
		}
		return set("failed", d.Reason, 0)
	}
	switch {
	case d.Safe && (out.Replaces != "" || !out.Repeat && b.shownOnce(tx, out.Bot, r.Begun)):
		return set("ready", askedAgain, time.Second)
	case !out.Repeat:
		return set("ready", mayHaveArrived, time.Second)
	}
	if err := set("unknown", mayHaveArrived+", twice", 0); err != nil {
		return err
	}
	var u unsureRow
	if err := tx.Get(ctx, &u, unsureColumns+` WHERE seq = $1`, out.Seq); err != nil {
		return err
	}
	return b.tell(ctx, tx, &u)
}

// notifyLate posts, once for each answer, that a message for one user could not
// be shown and must be requested again.
func (b *Outbox) notifyLate(ctx context.Context, tx *store.Tx, out *core.Outgoing) error {
	notice := core.Reply{Address: out.Address, Key: "notice:late:" + out.Answer, Parts: []core.Part{{Text: b.o.Late}}}
	if err := b.Post(ctx, tx, notice); core.KindOf(err) != core.Conflict {
		return err
	}
	return nil
}

// moveRow moves a row to the new id of its chat. A reply with an unknown outcome
// under the old id has one under the new id, too.
func (b *Outbox) moveRow(ctx context.Context, tx *store.Tx, out *core.Outgoing, to string, doubt bool) error {
	reason := ""
	if doubt {
		reason = mayHaveArrived
	}
	_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', chat = $1, place = CASE WHEN place <> '' THEN $1 ELSE '' END, replaces = '', error = $2, declined_at = ''
		WHERE seq = $3 AND chat = $4`, to, reason, out.Seq, out.Chat) // not again, where the answer of a commit was lost
	tx.OnCommit(func() { b.wakeChat(chatKey{out.Bot, to}) })
	return err
}
