package queue

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

// Post stores r's parts in the outbox; they are sent after the commit, in the
// chat's order. A second reply under the same key is a Conflict: a run owns
// one outbound slot.
func (q *Queue) Post(ctx context.Context, tx *store.Tx, r core.Reply) error {
	return q.post(ctx, tx, r, nil)
}

// post inserts the rows of r. When no earlier reply waits and the chat may be
// written to now, the first row is marked sending and joins u: the commit that
// stores the answer then also starts its delivery.
func (q *Queue) post(ctx context.Context, tx *store.Tx, r core.Reply, u *unit) error {
	if len(r.Parts) == 0 {
		return nil
	}
	key := chatKey{r.Bot, r.Chat}
	begin := false
	if u != nil && !strings.HasPrefix(r.Replaces, "@") {
		var err error
		if begin, err = q.reserveSend(ctx, tx, r.Address); err != nil {
			return err
		}
	}
	for i, part := range r.Parts {
		out := core.Outgoing{Address: r.Address, Part: part, Answer: r.Key}
		state, attempts, begun := "ready", 0, ""
		if i == 0 {
			out.Replaces = r.Replaces
		}
		if begin && i == 0 {
			state, attempts, begun = "sending", 1, core.Stamp(tx.Time())
		}
		var err error
		if out.Seq, err = q.insertOut(ctx, tx, r, i, out, state, attempts, begun); err != nil {
			if begin && i == 0 {
				q.unreserveSend(key)
			}
			return err
		}
		if begin && i == 0 {
			u.sends = append(u.sends, out)
		}
	}
	if !begin {
		tx.OnCommit(func() { q.kick(key) })
	}
	return nil
}

func (q *Queue) insertOut(ctx context.Context, tx *store.Tx, r core.Reply, i int, out core.Outgoing, state string, attempts int, begun string) (int64, error) {
	body, err := json.Marshal(out.Part)
	if err != nil {
		return 0, err
	}
	seq, err := tx.Insert(ctx, `INSERT INTO outbox (bot, chat, thread, place, key, ordinal, body, replaces, state, attempts, created_at, sent_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (key, ordinal) DO NOTHING`,
		r.Bot, r.Chat, r.Thread, r.Place, r.Key, r.First+i, string(body), out.Replaces, state, attempts, core.Stamp(tx.Time()), begun)
	if errors.Is(err, store.ErrNoRows) {
		return 0, core.Errorf(core.Conflict, "a reply under %s was stored before", r.Key)
	}
	return seq, err
}

// reserveSend reports whether this transaction may start a send to the chat.
func (q *Queue) reserveSend(ctx context.Context, tx *store.Tx, to core.Address) (bool, error) {
	key := chatKey{to.Bot, to.Chat}
	q.mu.Lock()
	_, busy := q.sending[key]
	_, ours := q.bots[to.Bot]
	ok := !busy && ours && q.open && len(q.sending) < maxSending
	if ok {
		q.sending[key] = false
		q.sends.Add(1) // while open is set, so that a stop waits for it
	}
	q.mu.Unlock()
	if !ok {
		return false, nil
	}
	var open bool
	err := tx.Get(ctx, &open, openReply, to.Bot, to.Chat)
	if err != nil || open || q.o.Sender.Wait(to) > 0 {
		q.unreserveSend(key)
		return false, err
	}
	return true, nil
}

func (q *Queue) unreserveSend(key chatKey) {
	q.mu.Lock()
	delete(q.sending, key)
	q.sends.Done()
	q.mu.Unlock()
}

// kick has the outbox of a chat checked by its running goroutine, or a new one.
func (q *Queue) kick(key chatKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, busy := q.sending[key]; busy {
		q.sending[key] = true
		return
	}
	q.beginChat(key)
}

// beginChat starts delivery for an idle chat. The caller holds q.mu.
func (q *Queue) beginChat(key chatKey) {
	if _, ours := q.bots[key.bot]; !ours || !q.open {
		return // it waits for a start with that bot
	}
	if len(q.sending) >= maxSending {
		q.more = true // the first that ends has the poll look
		return
	}
	q.sending[key] = false
	q.sends.Add(1)
	go q.deliver(q.work, key, nil)
}

// openReply selects whether bot $1 has undelivered replies to chat $2.
const openReply = `SELECT EXISTS (SELECT 1 FROM outbox WHERE bot = $1 AND chat = $2 AND state IN ('ready', 'sending'))`

// Sending reports whether a stored reply to the chat is not yet delivered,
// including one that waits for a retry. It returns true when the check fails.
func (q *Queue) Sending(ctx context.Context, to core.Address) bool {
	q.mu.Lock()
	_, busy := q.sending[chatKey{to.Bot, to.Chat}]
	q.mu.Unlock()
	if busy {
		return true
	}
	var open bool
	err := q.db.Get(ctx, &open, openReply, to.Bot, to.Chat)
	q.logErr(ctx, "look for a chat's open replies", err)
	return open || err != nil
}

// sendWaiting starts delivery for idle chats with due replies.
func (q *Queue) sendWaiting(ctx context.Context) error {
	now := q.o.Clock.Now()
	var chats []struct {
		Bot  string `db:"bot"`
		Chat string `db:"chat"`
	}
	err := q.db.Select(ctx, &chats, `SELECT bot, chat FROM outbox WHERE state IN ('ready', 'sending') AND state = 'ready'
		AND `+due+` GROUP BY bot, chat ORDER BY min(seq) LIMIT $3`, core.Stamp(now), core.Stamp(now.Add(maxPause)), maxSending)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range chats {
		// One that is being worked on looks for itself when its send has ended.
		if _, busy := q.sending[chatKey{c.Bot, c.Chat}]; !busy {
			q.beginChat(chatKey{c.Bot, c.Chat})
		}
	}
	return nil
}

// maxPause limits the retry_after of a platform.
const maxPause = 24 * time.Hour

// deliver sends the due replies of a chat in order. out, when given, is already
// marked sending.
func (q *Queue) deliver(ctx context.Context, key chatKey, out *core.Outgoing) {
	defer q.sends.Done()
	for {
		if out == nil {
			var err error
			if out, err = q.next(ctx, key, nil); err != nil { // the poll looks again
				q.logErr(ctx, "outbox of a chat", err)
				q.quit(key)
				return
			}
		}
		if out != nil {
			began := q.o.Clock.Now()
			d := q.o.Sender.Send(ctx, *out)
			q.o.Metrics.delivery(key.bot, d.Outcome, q.o.Clock.Now().Sub(began))
			sent := *out
			var ok bool
			if out, ok = q.settled(ctx, key, &sent, d); !ok {
				return
			}
		}
		// The transaction that has just ended saw nothing due.
		if out == nil && q.rest(key) {
			return
		}
	}
}

// settled stores the outcome of a send and returns the next reply of the chat. It
// retries while the database refuses writes, because an unsettled row blocks its
// chat. It returns false when ctx ends first; the next start then finds the row
// with an unknown outcome.
func (q *Queue) settled(ctx context.Context, key chatKey, sent *core.Outgoing, d core.Delivery) (*core.Outgoing, bool) {
	for {
		out, err := q.next(ctx, key, func(tx *store.Tx) error { return q.settleSend(ctx, tx, sent, d) })
		if err == nil {
			return out, true
		}
		q.o.Log.ErrorContext(ctx, "queue: settle a send", "row", sent.Seq, "err", err)
		if !core.Sleep(ctx, q.o.Clock, pollEvery) {
			q.quit(key)
			return nil, false
		}
	}
}

func (q *Queue) quit(key chatKey) {
	q.mu.Lock()
	q.done(key)
	q.mu.Unlock()
}

// done ends the delivery for a chat. The caller holds q.mu.
func (q *Queue) done(key chatKey) {
	delete(q.sending, key)
	if q.more {
		q.more = false
		q.ring()
	}
}

// rest ends the delivery for a chat, unless a reply was posted concurrently. It
// reports whether it ended.
func (q *Queue) rest(key chatKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sending[key] {
		q.sending[key] = false
		return false
	}
	q.done(key)
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
}

// next runs settle and marks the next due reply of the chat as sending, in one
// transaction fenced by the lease of the bot. It returns nil when none is due.
// Without settle it first waits until the chat may be written to.
func (q *Queue) next(ctx context.Context, key chatKey, settle func(*store.Tx) error) (*core.Outgoing, error) {
	if settle == nil {
		if wait := q.o.Sender.Wait(core.Address{Bot: key.bot, Chat: key.chat}); wait > 0 && !core.Sleep(ctx, q.o.Clock, wait) {
			return nil, nil
		}
	}
	write := ctx
	if settle != nil { // what happened is stored also while the queue stops
		write = context.WithoutCancel(ctx)
	}
	var out *core.Outgoing
	var paced bool
	err := q.db.Tx(write, func(tx *store.Tx) error {
		out, paced = nil, false
		if settle != nil {
			if err := settle(tx); err != nil {
				return err
			}
		}
		r, err := q.head(ctx, tx, key)
		if err != nil || r == nil {
			return err
		}
		to := core.Address{Bot: key.bot, Chat: key.chat, Thread: r.Thread, Place: r.Place}
		if settle != nil && q.o.Sender.Wait(to) > 0 {
			paced = true
			return nil
		}
		if out, err = q.outgoing(ctx, tx, r, to); err != nil {
			// It will not be readable later either, and must not hold its chat.
			q.o.Log.ErrorContext(ctx, "a reply cannot be read", "row", r.Seq, "err", err)
			out = nil
			tx.OnCommit(func() { q.o.Ring("queue"); q.kick(key) })
			_, err = tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = 'the stored reply cannot be read' WHERE seq = $1`, r.Seq)
			return err
		}
		begun := core.Stamp(tx.Time())
		if r.Error == askedAgain {
			begun = r.Begun
		}
		_, err = tx.Exec(ctx, `UPDATE outbox SET state = 'sending', attempts = attempts + 1, replaces = $1, sent_at = $2 WHERE seq = $3`, out.Replaces, begun, r.Seq)
		return err
	})
	if err == nil && paced {
		return q.next(ctx, key, nil)
	}
	return out, err
}

// head returns the first open reply of the chat, or nil when it is not due or the
// bot is leased by another node.
func (q *Queue) head(ctx context.Context, tx *store.Tx, key chatKey) (*outRow, error) {
	q.mu.Lock()
	epoch := q.bots[key.bot]
	stopping := q.work != nil && q.work.Err() != nil
	q.mu.Unlock()
	ours, err := store.Recall[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM lease WHERE name = $1 AND epoch = $2 AND owner = $3)`,
		"bot:"+key.bot, epoch, q.o.Node)
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
	return &r, nil
}

func (q *Queue) outgoing(ctx context.Context, tx *store.Tx, r *outRow, to core.Address) (*core.Outgoing, error) {
	out := &core.Outgoing{Address: to, Seq: r.Seq, Answer: r.Key, Replaces: r.Replaces, Repeat: q.marked(tx, r, to.Bot)}
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
