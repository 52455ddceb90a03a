package permission

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// Gauges is the collector of gatehouse_asks_open, which asks the table at
// scrape time.
func (d *Desk) Gauges() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_asks_open", Help: "Questions that wait for a person."}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var n int
		if err := d.db.Get(ctx, &n, `SELECT count(*) FROM asks WHERE state = 'open' AND (expires_at = '' OR expires_at > $1)`, core.Stamp(d.clock.Now())); err != nil {
			return -1 // shown, unlike a 0 that would look well
		}
		return float64(n)
	})
}
