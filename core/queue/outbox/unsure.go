package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Notices of a message that may be missing. The zero value posts none.
type Notices struct {
	// Missing is posted in the chat of a row of unknown outcome, with a button that
	// leads to ShowAgain.
	Missing func(seq int64) core.Part
	// Resolved takes its place: again when the message is sent again, otherwise when
	// the operator knows that it has arrived.
	Resolved func(again bool) core.Part
}

// untold are the prefixes of keys of messages without a notice: those to users without
// access, who may press no button, and the notices themselves.
var untold = []string{"pair:", "notice:pair:", "notice:group:", unsurePrefix}

const unsurePrefix = "notice:unsure:"

// An unsureRow is a row of unknown outcome, or one that is about to become one.
type unsureRow struct {
	Seq      int64  `db:"seq"`
	Bot      string `db:"bot"`
	Chat     string `db:"chat"`
	Thread   string `db:"thread"`
	Place    string `db:"place"`
	Key      string `db:"key"`
	Body     string `db:"body"`
	Attempts int    `db:"attempts"`
}

const unsureColumns = `SELECT seq, bot, chat, thread, place, key, body, attempts FROM outbox`

func (r *unsureRow) aside() string {
	var p core.Part
	_ = json.Unmarshal([]byte(r.Body), &p)
	return p.Aside
}

// notice returns the key of the row's notice: a row has one for each attempt of unknown
// outcome.
func (r *unsureRow) notice() string { return fmt.Sprintf("%s%d:%d", unsurePrefix, r.Seq, r.Attempts) }

// tell posts, once, that the message of a row may be missing. It is sent after what waits
// for the chat. A message for one user is sent to that user alone.
func (b *Outbox) tell(ctx context.Context, tx *store.Tx, r *unsureRow) error {
	if b.o.Notices.Missing == nil {
		return nil
	}
	for _, prefix := range untold {
		if strings.HasPrefix(r.Key, prefix) {
			return nil
		}
	}
	part := b.o.Notices.Missing(r.Seq)
	part.Aside = r.aside()
	to := core.Address{Bot: r.Bot, Chat: r.Chat, Thread: r.Thread, Place: r.Place}
	if err := b.Post(ctx, tx, core.Reply{Address: to, Key: r.notice(), Parts: []core.Part{part}}); core.KindOf(err) != core.Conflict {
		return err
	}
	return nil
}

// resolve ends the notice of a row that is decided on: one that waits is not sent, one
// that was sent loses its button.
func (b *Outbox) resolve(ctx context.Context, tx *store.Tx, r *unsureRow, again bool) error {
	if b.o.Notices.Resolved == nil {
		return nil
	}
	key := r.notice()
	if _, err := tx.Exec(ctx, `DELETE FROM outbox WHERE key = $1 AND state = 'ready'`, key); err != nil {
		return err
	}
	var open bool
	err := tx.Get(ctx, &open, `SELECT EXISTS (SELECT 1 FROM outbox WHERE key = $1 AND ordinal = 0 AND state IN ('sending', 'sent'))`, key)
	if err != nil || !open {
		return err
	}
	to := core.Address{Bot: r.Bot, Chat: r.Chat, Thread: r.Thread, Place: r.Place}
	err = b.Post(ctx, tx, core.Reply{Address: to, Key: key, First: 1, Replaces: "@" + key + "/0", Parts: []core.Part{b.o.Notices.Resolved(again)}})
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}

// Unsure reports whether the row is one of that chat, and of unknown outcome.
func (b *Outbox) Unsure(ctx context.Context, q store.Queryer, seq int64, to core.Address) (yes bool, err error) {
	err = q.Get(ctx, &yes, `SELECT EXISTS (SELECT 1 FROM outbox WHERE seq = $1 AND bot = $2 AND chat = $3 AND state = 'unknown')`, seq, to.Bot, to.Chat)
	return yes, err
}

// ShowAgain sends the message of a row of unknown outcome again, without a mark, because a
// user of its chat has asked for it. It does nothing when the row is decided on. What
// one user alone may see is shown by aside, or as it would have been.
func (b *Outbox) ShowAgain(ctx context.Context, tx *store.Tx, seq int64, to core.Address, aside string, by core.Actor) error {
	var r unsureRow
	err := tx.Get(ctx, &r, unsureColumns+` WHERE seq = $1 AND bot = $2 AND chat = $3 AND state = 'unknown'`, seq, to.Bot, to.Chat)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if aside != "" && r.aside() != "" {
		var p core.Part
		if err := json.Unmarshal([]byte(r.Body), &p); err != nil {
			return err
		}
		p.Aside = aside
		body, err := json.Marshal(p)
		if err != nil {
			return err
		}
		r.Body = string(body)
	}
	if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', error = '', not_before = '', declined_at = '', replaces = '', body = $1 WHERE seq = $2`, r.Body, seq); err != nil {
		return err
	}
	if err := b.resolve(ctx, tx, &r, true); err != nil {
		return err
	}
	tx.OnCommit(func() { b.wakeChat(chatKey{r.Bot, r.Chat}); b.o.Ring(core.TopicQueue) })
	return store.Audit(ctx, tx, by, "queue.send_again", "", map[string]any{"row": seq})
}
