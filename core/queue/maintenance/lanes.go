package maintenance

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// keepLanes is how long a lane without work is kept.
const keepLanes = 24 * time.Hour

// idleLane selects lanes that no one needs: without work, claim and preview, and
// released or woken last before $1.
const idleLane = `pending = 0 AND owner = '' AND preview = '' AND not_before < $1`

// pruneLanes deletes lanes that were idle for a day: every chat and every session of the
// API leaves one. It returns how many. It reads at most 1,000 in one step, and has the
// writer delete only where a step found some.
//
// A lane may be deleted because the next message creates it again: everything in it but
// the epoch is that of an idle lane. Put cannot lose it: it wakes the lane in the
// transaction that stores the message, so either the lane is not idle any more when the
// statement reads it, or Put creates it after. The epoch does not go back to one that an
// old claim had, for which the fence would let a process pass that was suspended since: a
// created lane has the time in milliseconds as its epoch, at least a day after the
// deleted one was released, and a lane is not claimed as often as once a millisecond.
func (t Tables) pruneLanes(ctx context.Context) (total int, err error) {
	before := core.Stamp(t.Clock.Now().Add(-keepLanes))
	for from := ""; ; {
		var page struct {
			Last string `db:"last"`
			Idle int    `db:"idle"`
		}
		err := t.DB.Get(ctx, &page, `SELECT coalesce(max(key), '') AS last, coalesce(sum(idle), 0) AS idle
			FROM (SELECT key, CASE WHEN `+idleLane+` THEN 1 ELSE 0 END AS idle FROM lane WHERE key > $2 ORDER BY key LIMIT 1000) AS page`, before, from)
		if err != nil {
			return total, fmt.Errorf("idle lanes: %w", err)
		}
		if page.Last == "" {
			return total, nil
		}
		if page.Idle > 0 {
			n, err := t.deleteLanes(ctx, before, from, page.Last)
			if total += n; err != nil {
				return total, fmt.Errorf("delete idle lanes: %w", err)
			}
		}
		from = page.Last
	}
}

// deleteLanes deletes the idle lanes behind from, up to last.
func (t Tables) deleteLanes(ctx context.Context, before, from, last string) (int, error) {
	var n int64
	err := t.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		n, err = tx.Exec(ctx, `DELETE FROM lane WHERE `+idleLane+` AND key > $2 AND key <= $3
			AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.lane = lane.key AND state IN ('ready', 'limited'))`, before, from, last)
		return err
	})
	return int(n), err
}
