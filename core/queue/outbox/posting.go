package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Posting is the state of a reply that was posted under a key.
type Posting struct {
	Bot, Chat string
	Parts     []PostedPart // in their order
}

// A PostedPart is one message of it.
type PostedPart struct {
	core.Part
	State     string // ready, sending, sent, unknown, failed
	Error     string // why it is not sent, or why the outcome is unknown
	CreatedAt time.Time
	SentAt    time.Time // for sent
}

// Posting returns the reply posted under key. found is false when none was, or
// when it was pruned after its delivery.
func (b *Outbox) Posting(ctx context.Context, from store.Queryer, key string) (p Posting, found bool, err error) {
	var rows []struct {
		Bot     string `db:"bot"`
		Chat    string `db:"chat"`
		Body    string `db:"body"`
		State   string `db:"state"`
		Error   string `db:"error"`
		Created string `db:"created_at"`
		Sent    string `db:"sent_at"`
	}
	if err := from.Select(ctx, &rows, `SELECT bot, chat, body, state, error, created_at, sent_at FROM outbox WHERE key = $1 ORDER BY ordinal`, key); err != nil {
		return p, false, fmt.Errorf("what was posted: %w", err)
	}
	for _, r := range rows {
		p.Bot, p.Chat = r.Bot, r.Chat
		part := PostedPart{State: r.State, Error: r.Error}
		_ = json.Unmarshal([]byte(r.Body), &part.Part) // shown without its text when unreadable
		if part.CreatedAt, err = core.ParseStamp(r.Created); err != nil {
			return p, false, err
		}
		if part.State == "sent" {
			if part.SentAt, err = core.ParseStamp(r.Sent); err != nil {
				return p, false, err
			}
		}
		p.Parts = append(p.Parts, part)
	}
	return p, len(rows) > 0, nil
}

// Waiting returns how many messages wait to be sent to the chat.
func (b *Outbox) Waiting(ctx context.Context, from store.Queryer, to core.Address) (n int, err error) {
	err = from.Get(ctx, &n, `SELECT count(*) FROM outbox WHERE bot = $1 AND chat = $2 AND state IN ('ready', 'sending')`, to.Bot, to.Chat)
	return n, err
}

// openReply selects whether bot $1 has undelivered replies to chat $2.
const openReply = `SELECT EXISTS (SELECT 1 FROM outbox WHERE bot = $1 AND chat = $2 AND state IN ('ready', 'sending'))`

// Sending reports whether a stored reply to the chat is not yet delivered,
// including one that waits for a retry. It returns true when the check fails.
func (b *Outbox) Sending(ctx context.Context, to core.Address) bool {
	b.mu.Lock()
	_, busy := b.sending[chatKey{to.Bot, to.Chat}]
	b.mu.Unlock()
	if busy {
		return true
	}
	var open bool
	err := b.db.Get(ctx, &open, openReply, to.Bot, to.Chat)
	b.logErr(ctx, "look for a chat's open replies", err)
	return open || err != nil
}

// maxPosted bounds what Posted gives.
const maxPosted = 100

// Posted returns the addresses and keys, without parts, of the messages with keys
// that begin with prefix, at most 100, sorted by key. Replies delivered more than 48 h
// ago are not included.
func (b *Outbox) Posted(ctx context.Context, tx *store.Tx, prefix string) ([]core.Reply, error) {
	if prefix == "" {
		return nil, nil
	}
	var rows []struct {
		Bot    string `db:"bot"`
		Chat   string `db:"chat"`
		Thread string `db:"thread"`
		Place  string `db:"place"`
		Key    string `db:"key"`
	}
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1) // the first that begins otherwise: the keys have an index
	err := tx.Select(ctx, &rows, `SELECT bot, chat, thread, place, key FROM outbox WHERE key >= $1 AND key < $2 AND ordinal = 0 ORDER BY key LIMIT $3`,
		prefix, end, maxPosted)
	if err != nil {
		return nil, fmt.Errorf("posted: %w", err)
	}
	out := make([]core.Reply, len(rows))
	for i, r := range rows {
		out[i] = core.Reply{Address: core.Address{Bot: r.Bot, Chat: r.Chat, Thread: r.Thread, Place: r.Place}, Key: r.Key}
	}
	return out, nil
}
