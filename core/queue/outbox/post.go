package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"gatehouse/core"
	"gatehouse/core/queue/flight"
	"gatehouse/core/store"
)

// Post stores r's parts in the outbox; they are sent after the commit, in the
// chat's order. A second reply under the same key is a Conflict: a run owns
// one outbound slot.
func (b *Outbox) Post(ctx context.Context, tx *store.Tx, r core.Reply) error {
	return b.PostNow(ctx, tx, r, nil)
}

// A Batch collects the sends that begin with one transaction. Pass it to Start
// after the commit, and to Cancel when the transaction is run again or fails.
type Batch struct{ sends []marked }

// Cancel frees the chats that a failed transaction had reserved.
func (b *Outbox) Cancel(u *Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range u.sends {
		s.flight.Release()
		s.place.leave()
		b.vacate(chatKey{s.Bot, s.Chat})
		b.sends.Done()
	}
	u.sends = nil
}

// Start begins the sends of a committed transaction.
func (b *Outbox) Start(u *Batch) {
	if len(u.sends) == 0 {
		return
	}
	b.mu.Lock()
	work := b.work
	b.mu.Unlock()
	for _, s := range u.sends {
		go b.deliver(work, chatKey{s.Bot, s.Chat}, &s)
	}
}

// PostNow posts r as Post does. When no earlier reply waits and the chat may be
// written to now, the first row is marked sending and joins u: the commit that
// stores the answer then also starts its delivery.
func (b *Outbox) PostNow(ctx context.Context, tx *store.Tx, r core.Reply, u *Batch) error {
	if len(r.Parts) == 0 {
		return nil
	}
	key := chatKey{r.Bot, r.Chat}
	var reserved reservation
	if u != nil && !strings.HasPrefix(r.Replaces, "@") {
		var err error
		if reserved, err = b.reserveSend(ctx, tx, r.Address); err != nil {
			return err
		}
	}
	begin := reserved.ok
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
		var f *flight.Send
		out.Seq, err = b.insertOut(ctx, tx, r, i, out, state, attempts, begun)
		if err == nil && begin && i == 0 {
			f, err = b.o.Flight.Mark(flight.Mark{Seq: out.Seq, Epoch: reserved.epoch, Attempt: attempts})
		}
		if err != nil {
			if begin && i == 0 {
				b.unreserveSend(key, reserved)
			}
			return err
		}
		if begin && i == 0 {
			u.sends = append(u.sends, newMarked(out, f, reserved.place))
		}
	}
	if !begin {
		tx.OnCommit(func() { b.wakeChat(key) })
	}
	return nil
}

func (b *Outbox) insertOut(ctx context.Context, tx *store.Tx, r core.Reply, i int, out core.Outgoing, state string, attempts int, begun string) (int64, error) {
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

// A reservation is what a transaction holds of a send that it may start.
type reservation struct {
	ok    bool
	epoch int64
	place place
}

// reserveSend reserves a send to the chat if this transaction may start one.
func (b *Outbox) reserveSend(ctx context.Context, tx *store.Tx, to core.Address) (reservation, error) {
	key := chatKey{to.Bot, to.Chat}
	var r reservation
	b.mu.Lock()
	_, busy := b.sending[key]
	if !busy && b.open && b.count[to.Bot] < maxSending {
		r.place, r.ok = b.tryEnter(to.Bot)
	}
	if r.ok {
		r.epoch = b.bots[to.Bot]
		b.occupy(key)
	}
	b.mu.Unlock()
	if !r.ok {
		return r, nil
	}
	var open bool
	err := tx.Get(ctx, &open, openReply, to.Bot, to.Chat)
	if err != nil || open || b.wait(to) > 0 {
		b.unreserveSend(key, r)
		return reservation{}, err
	}
	return r, nil
}

func (b *Outbox) unreserveSend(key chatKey, r reservation) {
	r.place.leave()
	b.mu.Lock()
	b.vacate(key)
	b.sends.Done()
	b.mu.Unlock()
}
