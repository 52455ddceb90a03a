package queue

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// maxPosted bounds what Posted gives.
const maxPosted = 100

// Posted returns the addresses and keys, without parts, of the messages whose keys
// begin with prefix, at most 100, sorted by key. Replies delivered more than 48 h
// ago are not included.
func (q *Queue) Posted(ctx context.Context, tx *store.Tx, prefix string) ([]core.Reply, error) {
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
