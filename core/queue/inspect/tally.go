package inspect

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Each branch reads one partial index: what is finished by its time, what is
// not as a whole, which is as much as waits.
const tallyInbox = `SELECT bot, sum(n) AS n, sum(dead) AS dead FROM (
	SELECT bot, 1 AS n, 0 AS dead FROM inbox WHERE state IN ('done', 'refused') AND received_at >= $1 AND received_at < $2 AND kind IN ('message', 'command')
	UNION ALL
	SELECT bot, 1, 0 FROM inbox WHERE state IN ('ready', 'limited') AND received_at >= $1 AND received_at < $2 AND kind IN ('message', 'command')
	UNION ALL
	SELECT bot, 1, 0 FROM inbox WHERE state = 'held' AND received_at >= $1 AND received_at < $2 AND kind IN ('message', 'command')
	UNION ALL
	SELECT bot, 1, 1 FROM inbox WHERE state = 'dead' AND received_at >= $1 AND received_at < $2
) AS parts GROUP BY bot`

const tallyOutbox = `SELECT bot, count(*) AS n FROM outbox WHERE state IN ('unknown', 'failed') AND created_at >= $1 AND created_at < $2 GROUP BY bot`

// Tally counts what came in a time, by bot: received|BOT are messages and
// commands, dead|BOT those of them that were given up, unsent|BOT parts of
// replies that failed or have an unknown outcome.
func (r *Reader) Tally(ctx context.Context, db store.Queryer, from, until time.Time) (map[string]int64, error) {
	var rows []struct {
		Bot  string `db:"bot"`
		N    int64  `db:"n"`
		Dead int64  `db:"dead"`
	}
	out := map[string]int64{}
	if err := db.Select(ctx, &rows, tallyInbox, core.Stamp(from), core.Stamp(until)); err != nil {
		return nil, fmt.Errorf("tally of messages: %w", err)
	}
	for _, r := range rows {
		add(out, "received|"+r.Bot, r.N)
		add(out, "dead|"+r.Bot, r.Dead)
	}
	rows = nil
	if err := db.Select(ctx, &rows, tallyOutbox, core.Stamp(from), core.Stamp(until)); err != nil {
		return nil, fmt.Errorf("tally of replies: %w", err)
	}
	for _, r := range rows {
		add(out, "unsent|"+r.Bot, r.N)
	}
	return out, nil
}

func add(to map[string]int64, series string, n int64) {
	if n > 0 {
		to[series] += n
	}
}
