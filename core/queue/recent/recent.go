// Package recent reads from the inbox what a sender has sent to a bot lately, for the rates of
// the queue. Times are the platform's; what was refused does not count.
package recent

import (
	"context"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// The three statements differ in the kind, which the index of each has as a constant.
const (
	countHead = `SELECT count(*) >= $1 FROM (SELECT 1 FROM inbox WHERE bot = $2 AND sender = $3 AND `
	countTail = ` AND counts = 1 AND sent_at > $4 AND state <> 'refused' LIMIT $5) AS lately`
	commands  = countHead + `kind = 'command'` + countTail
	presses   = countHead + `kind = 'callback' AND kind IN ('callback', 'edit')` + countTail
	edits     = countHead + `kind = 'edit' AND kind IN ('callback', 'edit')` + countTail
)

// Full reports whether in's sender has sent at least room updates of in's kind within the period
// before in: pressed buttons or edits, otherwise commands.
func Full(ctx context.Context, tx *store.Tx, in *core.Inbound, room int, period time.Duration) (full bool, err error) {
	count := commands
	switch in.Kind {
	case core.KindCallback:
		count = presses
	case core.KindEdit:
		count = edits
	}
	err = tx.Get(ctx, &full, count, room, in.Bot, in.From.ID, core.Stamp(in.At.Add(-period)), room)
	return full, err
}

// Album returns the state of the first part of in's album, or "" when in is the first since
// cut. Only the first part counts. album begins the names of the album's bursts (burst.Kind).
func Album(ctx context.Context, tx *store.Tx, in *core.Inbound, album string, cut time.Time) (state string, err error) {
	if in.Album == "" {
		return "", nil
	}
	err = tx.Get(ctx, &state, `SELECT state FROM inbox WHERE bot = $1 AND sender = $2 AND kind = 'message' AND counts = 1 AND sent_at > $3
		AND chat = $4 AND substr(burst, 1, length($5)) = $5 LIMIT 1`, in.Bot, in.From.ID, core.Stamp(cut), in.Chat, album)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	return state, err
}
