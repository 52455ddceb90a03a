package outbox

import (
	"context"
	"slices"

	"gatehouse/core/store"
)

// Recover makes replies ready again that are marked sending and that nobody sends: the
// connection to a server was lost during the commit of the mark, which was kept. They have
// never left. Call it now and then while the outbox is open; it writes only when there are
// some.
func (b *Outbox) Recover(ctx context.Context) error {
	found, err := b.orphans(ctx, b.db)
	if err != nil || len(found) == 0 {
		return err
	}
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		found, err := b.orphans(ctx, tx) // between transactions nobody is about to send one
		for _, r := range found {
			if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', attempts = attempts - 1 WHERE seq = $1`, r.Seq); err != nil {
				return err
			}
			tx.OnCommit(func() {
				b.o.Log.WarnContext(ctx, "a reply was marked by a commit whose answer was lost: it is sent now", "row", r.Seq)
				b.wakeChat(r.chat())
			})
		}
		return err
	})
}

// An orphan is a row in sending whose chat nobody works on.
type orphan struct {
	Seq  int64  `db:"seq"`
	Bot  string `db:"bot"`
	Chat string `db:"chat"`
}

func (o orphan) chat() chatKey { return chatKey{o.Bot, o.Chat} }

func (b *Outbox) orphans(ctx context.Context, q store.Queryer) (rows []orphan, err error) {
	if err := q.Select(ctx, &rows, `SELECT seq, bot, chat FROM outbox WHERE state IN ('ready', 'sending') AND state = 'sending'`); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(rows, func(r orphan) bool {
		_, busy := b.sending[r.chat()]
		_, ours := b.bots[r.Bot]
		return busy || !ours || !b.open
	}), nil
}
