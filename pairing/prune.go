package pairing

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// KeepRequests is how long a request stays in the list after it was denied or
// expired. One that was approved stays as long as its person.
const KeepRequests = 90 * 24 * time.Hour

// pruneBatch bounds one transaction of Prune.
const pruneBatch = 500

// Prune deletes requests that were denied, or expired, so long ago that nobody
// asks any more, and says how many. One stays while an older invitation works:
// it keeps whoever was turned away from coming back by that.
func (b *Book) Prune(ctx context.Context) (int, error) {
	total := 0
	for {
		var n int64
		err := b.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.Exec(ctx, `DELETE FROM pairing_requests WHERE id IN (SELECT id FROM pairing_requests
				WHERE status IN ('denied', 'expired') AND resolved_at <> '' AND resolved_at < $1
					AND NOT EXISTS (SELECT 1 FROM invites i WHERE i.bot = pairing_requests.bot AND i.at < pairing_requests.resolved_at AND i.uses_left > 0 AND i.expires_at > $2) LIMIT $3)`,
				core.Stamp(tx.Time().Add(-KeepRequests)), core.Stamp(tx.Time()), pruneBatch)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("prune pairing requests: %w", err)
		}
		if total += int(n); n < pruneBatch {
			return total, nil
		}
	}
}
