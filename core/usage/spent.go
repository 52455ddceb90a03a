package usage

import (
	"context"
	"fmt"

	"gatehouse/core/store"
)

// Spent returns what the settled calls of each run took, of all models together;
// Model is one of them. Runs without a call are left out. It is one statement.
func (l *Ledger) Spent(ctx context.Context, q store.Queryer, runs ...string) (map[string]Total, error) {
	spent := make(map[string]Total, len(runs))
	if len(runs) == 0 {
		return spent, nil
	}
	args := make([]any, len(runs))
	for i, run := range runs {
		args[i] = run
	}
	var rows []struct {
		Run string
		Total
	}
	err := q.Select(ctx, &rows, `SELECT run, max(model) AS model, count(*) AS calls, sum(input) AS input, sum(output) AS output,
			sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
			coalesce(sum(micro_usd), 0) AS micro_usd, count(*) - count(micro_usd) AS unpriced
		FROM usage WHERE run IN (VALUES `+store.Tuples(len(runs), 1)+`) AND state = 'settled' GROUP BY run`, args...)
	if err != nil {
		return nil, fmt.Errorf("usage of runs: %w", err)
	}
	for _, r := range rows {
		spent[r.Run] = r.Total
	}
	return spent, nil
}
