package queue

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/queue/burst"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/queue/recent"
	"gatehouse/core/store"
)

// A limits holds the rate of messages and commands of each sender. It is safe for
// concurrent use.
type limits struct {
	rate   func() Rate // may change at any time
	outbox *outbox.Outbox
	notice string
}

// message applies the rate to a message, by the time of the platform. In a direct message the row
// waits (at most maxLimited rows); in a group it is refused at once, so that one
// sender does not delay the others. The sender receives one notice either way.
// An album counts once: its further parts are refused like the first, or wait in
// the lane behind it.
func (l *limits) message(ctx context.Context, tx *store.Tx, in *core.Inbound, r *row, rate Rate) (string, error) {
	cut := in.At.Add(-4 * rate.Per)
	album, _ := burst.Kind(in)
	if first, err := recent.Album(ctx, tx, in, album, cut); first != "" || err != nil {
		if r.free = true; first == "refused" {
			r.state, r.keep = first, false
			return first, err
		}
		return "ready", err
	}
	// The N-th newest counted row decides when this one may run. A parameter
	// for the offset would make SQLite plan the statement each time.
	var nth string
	err := tx.Get(ctx, &nth, `SELECT CASE WHEN due <> '' THEN due ELSE sent_at END FROM inbox
		WHERE bot = $1 AND sender = $2 AND kind = 'message' AND counts = 1 AND sent_at > $3 AND state <> 'refused'
		ORDER BY sent_at DESC, seq DESC LIMIT 1 OFFSET -1`+fmt.Sprintf("+%d", rate.N), in.Bot, in.From.ID, core.Stamp(cut))
	if errors.Is(err, store.ErrNoRows) {
		return "ready", nil
	}
	if err != nil {
		return "", err
	}
	t, err := core.ParseStamp(nth)
	if err != nil {
		return "", err
	}
	due := t.Add(rate.Per)
	if !due.After(in.At) {
		return "ready", nil
	}
	waiting := 0
	if !in.Group() {
		if err := tx.Get(ctx, &waiting, `SELECT count(*) FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND state = 'limited'`, r.lane); err != nil {
			return "", err
		}
		if waiting < maxLimited {
			r.state, r.due = "limited", core.Stamp(due)
			return "limited", nil
		}
	}
	return l.tooMany(ctx, tx, in, r, rate)
}

// Commands are answered at once or refused, because a late answer may not be
// wanted any more. They have a higher limit of their own, and control commands
// such as /stop a higher one still.
const (
	commandsRoom = 3
	controlRoom  = 12
)

// command applies the rate to a command: it counts the commands of the sender within the
// period, by the time of the platform. Presses of buttons are counted apart from them.
func (l *limits) command(ctx context.Context, tx *store.Tx, in *core.Inbound, r *row, rate Rate, control bool) (string, error) {
	room := rate.N * commandsRoom
	if control {
		room = rate.N * controlRoom
	}
	full, err := recent.Full(ctx, tx, in, room, rate.Per)
	if err != nil || !full {
		return "ready", err
	}
	return l.tooMany(ctx, tx, in, r, rate)
}

// tooMany refuses an update and posts one notice in each period of the rate.
func (l *limits) tooMany(ctx context.Context, tx *store.Tx, in *core.Inbound, r *row, rate Rate) (string, error) {
	r.state, r.keep = "refused", false
	notice := core.Reply{
		Address: in.Address, Replaces: in.Slot,
		Key:   fmt.Sprintf("notice:rate:%s:%s:%s:%d", in.Bot, in.Chat, in.From.ID, in.At.Unix()/max(1, int64(rate.Per.Seconds()))),
		Parts: []core.Part{{Text: l.notice, Aside: in.Aside}},
	}
	if err := l.outbox.Post(ctx, tx, notice); err != nil && core.KindOf(err) != core.Conflict {
		return "", err
	}
	return "refused", nil
}
