package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// closedPrefix begins the error of replies that a chat did not take because the
// bot is kept out of it: the user has blocked it, or it was removed.
const closedPrefix = "the chat is closed to the bot: "

// inDoubt ends it when the outcome of an earlier attempt is unknown: the reply
// is marked when it is sent after the chat is open again.
const inDoubt = "; an earlier try may have arrived"

// reopenFor limits the age of replies that are sent when the bot is back in the
// chat; the operator decides on older ones.
const reopenFor = 24 * time.Hour

// Shut fails the replies that wait for these chats, and for chats in these
// places, because the bot is kept out of them.
func (b *Outbox) Shut(ctx context.Context, tx *store.Tx, bot string, chats []string, reason string) error {
	found, err := waitingIn(ctx, tx, chats, `SELECT DISTINCT chat, thread, place FROM outbox WHERE bot = $1 AND state IN ('ready', 'sending') AND state = 'ready'`, bot)
	if err != nil {
		return fmt.Errorf("shut chats: %w", err)
	}
	for _, chat := range found {
		if err := b.shut(ctx, tx, bot, chat, reason); err != nil {
			return err
		}
	}
	return nil
}

func (b *Outbox) shut(ctx context.Context, tx *store.Tx, bot, chat, reason string) error {
	n, err := tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = $1 || CASE WHEN error = '`+mayHaveArrived+`' OR error = '`+askedAgain+`' AND replaces = '' THEN '`+inDoubt+`' ELSE '' END
		WHERE bot = $2 AND chat = $3 AND state IN ('ready', 'sending') AND state = 'ready'`, closedError(reason, false), bot, chat)
	if err != nil {
		return fmt.Errorf("shut a chat: %w", err)
	}
	if n > 0 {
		tx.OnCommit(func() { b.o.Ring(core.TopicQueue) })
	}
	return nil
}

// closedError returns the error stored with such a reply.
func closedError(reason string, doubt bool) string {
	text := core.CutRunes(closedPrefix+reason, 250)
	if doubt {
		text += inDoubt
	}
	return text
}

// Reopen sends the replies of the last day that these chats, and chats in these
// places, refused while the bot was kept out.
func (b *Outbox) Reopen(ctx context.Context, tx *store.Tx, bot string, chats []string) error {
	const closed = ` WHERE bot = $1 AND created_at > $2 AND state IN ('unknown', 'failed') AND state = 'failed' AND error LIKE '` + closedPrefix + `%'`
	since := core.Stamp(tx.Time().Add(-reopenFor))
	found, err := waitingIn(ctx, tx, chats, `SELECT DISTINCT chat, thread, place FROM outbox`+closed, bot, since)
	if err != nil {
		return fmt.Errorf("reopen chats: %w", err)
	}
	for _, chat := range found {
		if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', error = CASE WHEN error LIKE '%`+inDoubt+`' THEN '`+mayHaveArrived+`' ELSE '' END, not_before = '', declined_at = '', attempts = 0`+closed+` AND chat = $3`, bot, since, chat); err != nil {
			return fmt.Errorf("reopen a chat: %w", err)
		}
		tx.OnCommit(func() { b.wakeChat(chatKey{bot, chat}); b.o.Ring(core.TopicQueue) })
	}
	return nil
}

// waitingIn returns the chats of a query that are among chats, or in one of them.
func waitingIn(ctx context.Context, tx *store.Tx, chats []string, query string, args ...any) (found []string, err error) {
	var rows []struct {
		Chat   string `db:"chat"`
		Thread string `db:"thread"`
		Place  string `db:"place"`
	}
	if err := tx.Select(ctx, &rows, query, args...); err != nil {
		return nil, err
	}
	for _, r := range rows {
		in := r.Place
		if in == "" && r.Thread != "" { // of a direct message
			in = strings.TrimSuffix(r.Chat, "/"+r.Thread)
		}
		if slices.Contains(chats, r.Chat) || in != "" && slices.Contains(chats, in) {
			found = append(found, r.Chat)
		}
	}
	return found, nil
}

// Move lets the replies that wait for a chat follow it to its new id. Edits
// become new messages, because ids of messages do not move along.
func (b *Outbox) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	n, err := tx.Exec(ctx, `UPDATE outbox SET chat = $1, place = CASE WHEN place <> '' THEN $1 ELSE '' END, replaces = '' WHERE bot = $2 AND chat = $3 AND state IN ('ready', 'sending') AND state = 'ready'`, to, bot, from)
	if err != nil {
		return fmt.Errorf("move replies: %w", err)
	}
	if n > 0 {
		tx.OnCommit(func() { b.wakeChat(chatKey{bot, to}) })
	}
	return nil
}
