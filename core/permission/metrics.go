package permission

import (
	"context"
	"errors"
	"slices"
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

// Metrics are the guard's counters.
type Metrics struct{ denied *prometheus.CounterVec }

// NewMetrics registers gatehouse_denied_total{rule} with reg (nil: nowhere), at 0
// for each of DenyRules. It is shared with whoever registered it before.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_denied_total", Help: "Refusals, by the rule that decided."}, []string{"rule"})}
	if reg != nil {
		var there prometheus.AlreadyRegisteredError
		if err := reg.Register(m.denied); errors.As(err, &there) {
			if old, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
				m.denied = old
			}
		}
	}
	for _, r := range DenyRules {
		m.denied.WithLabelValues(r)
	}
	return m
}

func (m *Metrics) count(d Decision) {
	if m != nil && d.Verdict == Deny && slices.Contains(DenyRules, d.Rule) {
		m.denied.WithLabelValues(d.Rule).Inc()
	}
}
