package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// wakeChat has the outbox of a chat checked by its running goroutine, or a new one.
func (b *Outbox) wakeChat(key chatKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, busy := b.sending[key]; busy {
		b.sending[key] = true
		return
	}
	b.beginChat(key)
}

// beginChat starts delivery for an idle chat. The caller holds b.mu.
func (b *Outbox) beginChat(key chatKey) {
	if _, ours := b.bots[key.bot]; !ours || !b.open {
		return // it waits for a start with that bot
	}
	if b.count[key.bot] >= maxSending {
		b.more[key.bot] = true // its first chat that ends has the poll look
		return
	}
	b.occupy(key)
	go b.deliver(b.work, key, nil)
}

// due selects replies that may be sent at $1. A later time than $2, the longest
// wait there is, was stamped before the clock was set back.
const due = `(not_before <= $1 OR not_before > $2)`

// dueChats selects the chats of a bot whose oldest reply is due: one that waits there keeps the later
// ones back, and a place among those that are worked on from other chats.
const dueChats = `SELECT head.chat FROM (SELECT chat, min(seq) AS seq FROM outbox WHERE state IN ('ready', 'sending') AND bot = $3 GROUP BY chat) AS oldest
	JOIN outbox AS head ON head.seq = oldest.seq WHERE head.state = 'ready' AND ` + due + ` ORDER BY head.seq LIMIT $4`

// SendWaiting starts delivery for idle chats with due replies. Call it once a
// second, and when Bell receives. What waits for one bot delays no other's.
func (b *Outbox) SendWaiting(ctx context.Context) error {
	now := b.o.Clock.Now()
	errs := []error{b.failLate(ctx)}
	for _, bot := range b.Leased() {
		var chats []string
		err := b.db.Select(ctx, &chats, dueChats, core.Stamp(now), core.Stamp(now.Add(maxPause)), bot, 2*maxSending) // of these, maxSending may be worked on
		errs = append(errs, err)
		b.mu.Lock()
		for _, chat := range chats {
			// One that is being worked on looks for itself when its send has ended.
			if _, busy := b.sending[chatKey{bot, chat}]; !busy {
				b.beginChat(chatKey{bot, chat})
			}
		}
		b.mu.Unlock()
	}
	return errors.Join(errs...)
}

// maxPause limits the retry_after of a platform.
const maxPause = 24 * time.Hour

// deliver sends the due replies of a chat in order. out, when given, is already
// marked sending.
func (b *Outbox) deliver(ctx context.Context, key chatKey, out *marked) {
	defer b.sends.Done()
	for {
		if out == nil {
			var err error
			if out, err = b.next(ctx, key, nil, nil); err != nil { // the poll looks again
				b.logErr(ctx, "outbox of a chat", err)
				b.end(key)
				return
			}
		}
		if out != nil {
			began := b.o.Clock.Now()
			d := core.Delivery{Outcome: core.NotSent, Reason: "the gateway was frozen, or cut off from the database"}
			if !b.stale(out) {
				out.flight.Until(func() bool { return b.stale(out) }) // connecting may take long
				d = b.sender.Send(ctx, out.Outgoing)
			}
			b.o.Metrics.Delivered(key.bot, d.Outcome, b.o.Clock.Now().Sub(began))
			switch d.Outcome {
			case core.Sent:
				out.flight.Accepted(d.MessageID)
			case core.NotSent, core.RetryAfter, core.Refused:
				out.flight.NotAccepted()
			default:
				out.flight.Unanswered()
			}
			var ok bool
			if out, ok = b.settled(ctx, key, out, d); !ok {
				return
			}
		}
		// The transaction that has just ended saw nothing due.
		if out == nil && b.endIfIdle(key) {
			return
		}
	}
}

// settled stores the outcome of a send and returns the next reply of the chat. It
// retries while the database refuses writes, because an unsettled row blocks its
// chat. It returns false when ctx ends first; the next start then finds the row in
// sending, and what was recorded of it.
func (b *Outbox) settled(ctx context.Context, key chatKey, sent *marked, d core.Delivery) (*marked, bool) {
	for {
		out, err := b.next(ctx, key, sent, &d)
		if err == nil {
			return out, true
		}
		b.o.Log.ErrorContext(ctx, "queue: settle a send", "row", sent.Seq, "err", err)
		if !core.Sleep(ctx, b.o.Clock, retryStore) {
			sent.place.leave()
			b.end(key)
			return nil, false
		}
	}
}

func (b *Outbox) end(key chatKey) {
	b.mu.Lock()
	b.endLocked(key)
	b.mu.Unlock()
}

// endLocked ends the delivery for a chat. The caller holds b.mu.
func (b *Outbox) endLocked(key chatKey) {
	b.vacate(key)
	if b.more[key.bot] {
		delete(b.more, key.bot)
		b.ring()
	}
}

// endIfIdle ends the delivery for a chat, unless a reply was posted concurrently. It
// reports whether it ended.
func (b *Outbox) endIfIdle(key chatKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sending[key] {
		b.sending[key] = false
		return false
	}
	b.endLocked(key)
	return true
}

type outRow struct {
	Seq      int64  `db:"seq"`
	Key      string `db:"key"`
	Thread   string `db:"thread"`
	Place    string `db:"place"`
	Body     string `db:"body"`
	Replaces string `db:"replaces"`
	State    string `db:"state"`
	Attempts int    `db:"attempts"`
	Error    string `db:"error"`
	NotUntil string `db:"not_before"`
	Begun    string `db:"sent_at"` // while it is not sent: when the last try began, or the first one in doubt
	Declined string `db:"declined_at"`
	Epoch    int64  `db:"-"` // of the bot's lease
}

func (r *outRow) to(key chatKey) core.Address {
	return core.Address{Bot: key.bot, Chat: key.chat, Thread: r.Thread, Place: r.Place}
}

// next stores the outcome d of sent, and marks the next due reply of the chat as sending,
// in a transaction fenced by the lease of the bot. It returns nil when none is due.
// Without sent, and where the chat has to wait, it first waits until the chat may be
// written to, and for a place among the sends of the bot.
func (b *Outbox) next(ctx context.Context, key chatKey, sent *marked, d *core.Delivery) (*marked, error) {
	if sent != nil {
		// What happened is stored also while the queue stops.
		out, paced, err := b.settleAndMark(context.WithoutCancel(ctx), key, sent, d)
		if err != nil {
			return nil, err
		}
		sent.flight.Release()
		if out != nil {
			return out, nil
		}
		if sent.place.leave(); !paced {
			return nil, nil
		}
	}
	for {
		p, ok := b.await(ctx, key)
		if !ok {
			return nil, nil
		}
		out, paced, err := b.markNext(ctx, key, p, nil)
		if out != nil && err == nil {
			return out, nil
		}
		if p.leave(); !paced {
			return nil, err
		}
	}
}

// settleAndMark stores the outcome of sent and marks the next due reply of the chat. That a
// message has arrived need not wait for the disk: after a power cut the row is found
// sending, and what became of it is unknown, as if the power had gone before the answer.
// A mark must be on the disk before its message leaves, so a row that is due gets a
// transaction of its own then.
func (b *Outbox) settleAndMark(ctx context.Context, key chatKey, sent *marked, d *core.Delivery) (out *marked, paced bool, err error) {
	settle := func(tx *store.Tx) error { return b.settleSend(ctx, tx, sent, *d) }
	if d.Outcome != core.Sent {
		return b.markNext(ctx, key, sent.place, settle)
	}
	due := false
	err = b.db.TxSoon(ctx, func(tx *store.Tx) error {
		due = false
		if err := settle(tx); err != nil {
			return err
		}
		r, err := b.head(ctx, tx, key)
		due = r != nil
		return err
	})
	if err != nil || !due {
		return nil, false, err
	}
	return b.markNext(ctx, key, sent.place, nil)
}

// await waits until the chat may be written to and a place is free. It returns false when
// ctx ends first, or the bot is not ours.
func (b *Outbox) await(ctx context.Context, key chatKey) (place, bool) {
	to := core.Address{Bot: key.bot, Chat: key.chat}
	for {
		if wait := b.wait(to); wait > 0 && !core.Sleep(ctx, b.o.Clock, wait) {
			return place{}, false
		}
		p, ok := b.enter(ctx, key.bot)
		if !ok {
			return place{}, false
		}
		if b.wait(to) <= 0 {
			return p, true
		}
		p.leave()
	}
}

// markNext runs settle, if it is given, and marks the next due reply of the chat, which
// will be sent in place p. paced reports that the chat must not be written to now.
func (b *Outbox) markNext(ctx context.Context, key chatKey, p place, settle func(*store.Tx) error) (out *marked, paced bool, err error) {
	err = b.db.Tx(ctx, func(tx *store.Tx) (err error) {
		out.unrecord() // a closure may be run twice
		out, paced = nil, false
		if settle != nil {
			if err := settle(tx); err != nil {
				return err
			}
		}
		r, err := b.head(ctx, tx, key)
		if err != nil || r == nil {
			return err
		}
		if paced = b.wait(r.to(key)) > 0; paced {
			return nil
		}
		out, err = b.mark(ctx, tx, r, key, p)
		return err
	})
	if err != nil {
		out.unrecord()
		return nil, false, err
	}
	return out, paced, nil
}

// head returns the first open reply of the chat, or nil when it is not due or the
// bot is leased by another node.
func (b *Outbox) head(ctx context.Context, tx *store.Tx, key chatKey) (*outRow, error) {
	b.mu.Lock()
	epoch := b.bots[key.bot]
	stopping := b.work != nil && b.work.Err() != nil
	b.mu.Unlock()
	ours, err := store.Recall[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM lease WHERE name = $1 AND epoch = $2 AND owner = $3)`,
		"bot:"+key.bot, epoch, b.o.Node)
	if err != nil || !ours || stopping {
		return nil, err
	}
	var r outRow
	err = tx.Get(ctx, &r, `SELECT seq, key, thread, place, body, replaces, state, attempts, error, not_before, sent_at FROM outbox
		WHERE bot = $1 AND chat = $2 AND state IN ('ready', 'sending') ORDER BY seq LIMIT 1`, key.bot, key.chat)
	if errors.Is(err, store.ErrNoRows) {
		return nil, nil
	}
	if err != nil || r.State != "ready" {
		return nil, err
	}
	if at, err := core.ParseStamp(r.NotUntil); err != nil || at.After(tx.Time()) && at.Before(tx.Time().Add(maxPause)) {
		return nil, err
	}
	r.Epoch = epoch
	return &r, nil
}

func (b *Outbox) outgoing(ctx context.Context, tx *store.Tx, r *outRow, to core.Address) (*core.Outgoing, error) {
	out := &core.Outgoing{Address: to, Seq: r.Seq, Answer: r.Key, Replaces: r.Replaces, Repeat: b.needsMark(tx, r, to.Bot)}
	if err := json.Unmarshal([]byte(r.Body), &out.Part); err != nil {
		return nil, fmt.Errorf("outbox row %d: %w", r.Seq, err)
	}
	if ref, ok := strings.CutPrefix(r.Replaces, "@"); ok {
		out.Replaces = ""
		if i := strings.LastIndexByte(ref, '/'); i > 0 {
			var was struct {
				ID   string `db:"platform_message_id"`
				Body string `db:"body"`
			}
			err := tx.Get(ctx, &was, `SELECT platform_message_id, body FROM outbox WHERE key = $1 AND ordinal = $2`, ref[:i], ref[i+1:])
			if err != nil && !errors.Is(err, store.ErrNoRows) {
				return nil, err
			}
			out.Replaces = was.ID
			var part core.Part
			if json.Unmarshal([]byte(was.Body), &part) == nil && part.Aside != "" {
				out.Aside = part.Aside // who saw it alone sees alone what becomes of it
			}
		}
	}
	return out, nil
}
