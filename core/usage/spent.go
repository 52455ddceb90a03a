package usage

import (
	"context"
	"fmt"

	"gatehouse/core/store"
)

// Spent is what the settled calls of one run took, of all models together;
// Model is one of them.
func (l *Ledger) Spent(ctx context.Context, q store.Queryer, run string) (t Total, err error) {
	err = q.Get(ctx, &t, `SELECT coalesce(max(model), '') AS model, count(*) AS calls, coalesce(sum(input), 0) AS input, coalesce(sum(output), 0) AS output,
			coalesce(sum(cache_read), 0) AS cache_read, coalesce(sum(cache_write), 0) AS cache_write,
			coalesce(sum(micro_usd), 0) AS micro_usd, count(*) - count(micro_usd) AS unpriced
		FROM usage WHERE run = $1 AND state = 'settled'`, run)
	if err != nil {
		return Total{}, fmt.Errorf("usage of run: %w", err)
	}
	return t, nil
}
