package inspect

import (
	"context"
	"time"

	"gatehouse/core"
)

// A Depth counts one bot's waiting work and returns how long it has waited.
type Depth struct {
	Bot                                     string
	Ready, Held, Limited, Dead              int64
	OldestReady                             time.Duration // age of the oldest row that may run
	OutboxOpen, OutboxUnknown, OutboxFailed int64
	OutboxOldest                            time.Duration
}

// Depths returns one entry for each bot that this node serves or that has work.
func (r *Reader) Depths(ctx context.Context) ([]Depth, error) {
	now := r.o.Clock.Now()
	byBot := map[string]*Depth{} // bounded by the bots
	var order []string
	at := func(bot string) *Depth {
		if byBot[bot] == nil {
			byBot[bot] = &Depth{Bot: bot}
			order = append(order, bot)
		}
		return byBot[bot]
	}
	for _, bot := range r.o.Leased() {
		at(bot)
	}
	var rows []struct {
		Bot    string `db:"bot"`
		State  string `db:"state"`
		N      int64  `db:"n"`
		Oldest string `db:"oldest"`
	}
	// Each on its partial index, so that finished rows are never touched. A plain
	// "GROUP BY bot" would tempt the engine to walk the index that begins with bot.
	err := r.db.Select(ctx, &rows, `SELECT min(bot) AS bot, state, count(*) AS n, min(received_at) AS oldest FROM inbox WHERE state IN ('ready', 'limited') GROUP BY bot || '', state
		UNION ALL SELECT min(bot), state, count(*), min(received_at) FROM inbox WHERE state = 'held' GROUP BY bot || '', state
		UNION ALL SELECT min(bot), state, count(*), min(received_at) FROM inbox WHERE state = 'dead' GROUP BY bot || '', state
		UNION ALL SELECT bot, 'out:open', count(*), min(created_at) FROM outbox WHERE state IN ('ready', 'sending') GROUP BY bot
		UNION ALL SELECT bot, 'out:' || state, count(*), min(created_at) FROM outbox WHERE state IN ('unknown', 'failed') GROUP BY bot, state`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		d := at(row.Bot)
		oldest, err := core.ParseStamp(row.Oldest)
		if err != nil {
			return nil, err
		}
		age := max(0, now.Sub(oldest))
		switch row.State {
		case "ready":
			d.Ready, d.OldestReady = row.N, age
		case "limited":
			d.Limited = row.N
		case "held":
			d.Held = row.N
		case "dead":
			d.Dead = row.N
		case "out:open":
			d.OutboxOpen, d.OutboxOldest = row.N, age
		case "out:unknown":
			d.OutboxUnknown = row.N
		case "out:failed":
			d.OutboxFailed = row.N
		}
	}
	out := make([]Depth, 0, len(order))
	for _, bot := range order {
		out = append(out, *byBot[bot])
	}
	return out, nil
}
