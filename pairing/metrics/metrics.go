// Package metrics reports how many pairing requests wait.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/store"
)

type pending struct {
	db    *store.DB
	clock core.Clock
	bots  func() []string
	desc  *prometheus.Desc
}

// Pending returns the collector of gatehouse_pairing_pending, which asks the table at
// scrape time. bots returns the configured bots: other names would be labels without
// bound.
func Pending(db *store.DB, clock core.Clock, bots func() []string) prometheus.Collector {
	return &pending{db, clock, bots, prometheus.NewDesc("gatehouse_pairing_pending", "Pairing requests that wait for a decision.", []string{"bot"}, nil)}
}

func (p *pending) Describe(ch chan<- *prometheus.Desc) { ch <- p.desc }

func (p *pending) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var rows []struct {
		Bot string `db:"bot"`
		N   int    `db:"n"`
	}
	err := p.db.Select(ctx, &rows, `SELECT bot, count(*) AS n FROM pairing_requests WHERE status = 'pending' AND expires_at > $1 GROUP BY bot`,
		core.Stamp(p.clock.Now()))
	if err != nil {
		ch <- prometheus.NewInvalidMetric(p.desc, err)
		return
	}
	n := map[string]int{} // bounded by the configured bots
	for _, bot := range p.bots() {
		n[bot] = 0
	}
	for _, r := range rows {
		if _, ok := n[r.Bot]; ok {
			n[r.Bot] = r.N
		}
	}
	for bot, v := range n {
		ch <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(v), bot)
	}
}
