package nodes

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/store"
)

// Gauge returns how many gateways share the database of db, by state. On SQLite that is this
// one; while a server does not answer there is no value.
func Gauge(db *store.DB) prometheus.Collector { return &gauge{db} }

type gauge struct{ db *store.DB }

var desc = prometheus.NewDesc("gatehouse_nodes", "Gateways that share the database on a PostgreSQL server, by state: serving, standby, or gone without a proper end within the last day.", []string{"state"}, nil)

func (g *gauge) Describe(ch chan<- *prometheus.Desc) { ch <- desc }

func (g *gauge) Collect(ch chan<- prometheus.Metric) {
	count := map[string]int{Serving: 0, Standby: 0, Gone: 0}
	if !store.OnServer(g.db.Path()) {
		count[Serving] = 1
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		all, err := List(ctx, g.db)
		if err != nil {
			return
		}
		for _, n := range all {
			count[n.State]++
		}
	}
	for state, n := range count {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), state)
	}
}
