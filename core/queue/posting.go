package queue

import (
	"context"
	"encoding/json"
	"errors"
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
func (q *Queue) Posting(ctx context.Context, from store.Queryer, key string) (p Posting, found bool, err error) {
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

// Stored returns the message id and chat of a stored update. found is false for
// an update that is not stored, or not any more.
func (q *Queue) Stored(ctx context.Context, bot, update string) (message, chat string, found bool, err error) {
	var r struct {
		Message string `db:"message_id"`
		Chat    string `db:"chat"`
	}
	err = q.db.Get(ctx, &r, `SELECT message_id, chat FROM inbox WHERE bot = $1 AND update_id = $2`, bot, update)
	if errors.Is(err, store.ErrNoRows) {
		return "", "", false, nil
	}
	if err != nil {
		return "", "", false, fmt.Errorf("what was stored: %w", err)
	}
	return r.Message, r.Chat, true, nil
}

// Queued returns how many messages of the sender wait or are being answered,
// counted up to most.
func (q *Queue) Queued(ctx context.Context, bot, sender string, most int) (n int, err error) {
	err = q.db.Get(ctx, &n, `SELECT count(*) FROM (SELECT 1 FROM inbox WHERE lane > '' AND state IN ('ready', 'limited') AND bot = $1 AND sender = $2 AND kind = 'message' LIMIT $3) AS waiting`,
		bot, sender, most)
	if err != nil {
		return 0, fmt.Errorf("what waits of a sender: %w", err)
	}
	return n, nil
}

// Waiting returns how many messages wait to be sent to the chat.
func (q *Queue) Waiting(ctx context.Context, from store.Queryer, to core.Address) (n int, err error) {
	err = from.Get(ctx, &n, `SELECT count(*) FROM outbox WHERE bot = $1 AND chat = $2 AND state IN ('ready', 'sending')`, to.Bot, to.Chat)
	return n, err
}
