package index

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/store"
)

// Unindexed returns how many sessions Fill has yet to index, wholly or in part.
func (x *Index) Unindexed(ctx context.Context) (n int64, err error) {
	err = x.db.Get(ctx, &n, `SELECT count(*) FROM index_manifest WHERE behind > 0`)
	if err != nil {
		return 0, fmt.Errorf("count what is not indexed: %w", err)
	}
	last, _, err := store.Metadata(ctx, x.db, walked)
	if err != nil || last == walkedAll {
		return n, err
	}
	var unknown int64 // while Fill looks for them, the index does not know all
	err = x.db.Get(ctx, &unknown, `SELECT count(*) FROM sessions s WHERE NOT EXISTS (SELECT 1 FROM index_manifest m WHERE m.content_id = s.id)`)
	if err != nil {
		return 0, fmt.Errorf("count what is not indexed: %w", err)
	}
	return n + unknown, nil
}

// UnindexedGauge returns the collector of gatehouse_index_conversations_pending, which
// counts at scrape time.
func (x *Index) UnindexedGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_index_conversations_pending", Help: "Conversations of which something is to be indexed; -1 if they cannot be counted.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		n, err := x.Unindexed(ctx)
		if err != nil {
			return -1
		}
		return float64(n)
	})
}
