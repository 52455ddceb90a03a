// Package orphans releases lanes that no one works on: the commit that claimed them
// succeeded on the server, but its confirmation was lost with the connection.
package orphans

import (
	"context"
	"log/slog"
	"slices"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Free frees the lanes that node has claimed and that run no turn, and returns how many.
// runs is asked between transactions, when a turn of each claimed lane is known. It writes
// only when there are some.
func Free(ctx context.Context, db *store.DB, node string, runs func(lane string) bool, log *slog.Logger) (n int, err error) {
	found, err := claimed(ctx, db, node, runs)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	err = db.Tx(ctx, func(tx *store.Tx) error {
		found, err := claimed(ctx, tx, node, runs)
		for _, lane := range found {
			// The claim has counted an attempt that was none.
			if _, err := tx.Exec(ctx, `UPDATE inbox SET attempts = attempts - 1 WHERE lane = $1 AND state IN ('ready', 'limited') AND run <> '' AND attempts > 0`, lane); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE lane SET owner = '', pending = 1, not_before = $1 WHERE key = $2`, core.Stamp(tx.Time()), lane); err != nil {
				return err
			}
			log.WarnContext(ctx, "a lane was claimed by a commit whose answer was lost: it is free again", "lane", lane)
		}
		n = len(found)
		return err
	})
	return n, err
}

// claimed returns the lanes of a node that run no turn.
func claimed(ctx context.Context, q store.Queryer, node string, runs func(string) bool) (lanes []string, err error) {
	err = q.Select(ctx, &lanes, `SELECT key FROM lane WHERE owner <> '' AND owner = $1`, node)
	return slices.DeleteFunc(lanes, runs), err
}
