package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges reads the tables at each scrape, so the figures are never out of date.
type gauges struct {
	r                                  *Reader
	bots                               []string // always reported, also without work
	depth, oldest, dead, outbox, lanes *prometheus.Desc
}

// Gauges returns the collector of gatehouse_inbox_depth, _oldest_ready_seconds,
// _dead_letters, _outbox_oldest_seconds and _lanes. Series of bots exist from the start.
func (r *Reader) Gauges(bots []string) prometheus.Collector {
	return &gauges{
		r:      r,
		bots:   bots,
		depth:  prometheus.NewDesc("gatehouse_inbox_depth", "Messages that wait to be answered.", []string{"bot"}, nil),
		oldest: prometheus.NewDesc("gatehouse_oldest_ready_seconds", "Age of the oldest message that waits.", []string{"bot"}, nil),
		dead:   prometheus.NewDesc("gatehouse_dead_letters", "Messages that were given up and are neither retried nor dismissed.", []string{"bot"}, nil),
		outbox: prometheus.NewDesc("gatehouse_outbox_oldest_seconds", "Age of the oldest reply not yet delivered.", []string{"bot"}, nil),
		lanes:  prometheus.NewDesc("gatehouse_lanes", "Lanes with work: running or waiting.", []string{"state"}, nil),
	}
}

func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.depth
	ch <- g.oldest
	ch <- g.dead
	ch <- g.outbox
	ch <- g.lanes
}

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	depths, err := g.r.Depths(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(g.depth, err)
		return
	}
	for _, bot := range g.bots {
		if !slices.ContainsFunc(depths, func(d Depth) bool { return d.Bot == bot }) {
			depths = append(depths, Depth{Bot: bot})
		}
	}
	for _, d := range depths {
		ch <- prometheus.MustNewConstMetric(g.depth, prometheus.GaugeValue, float64(d.Ready+d.Limited), d.Bot)
		ch <- prometheus.MustNewConstMetric(g.oldest, prometheus.GaugeValue, d.OldestReady.Seconds(), d.Bot)
		ch <- prometheus.MustNewConstMetric(g.dead, prometheus.GaugeValue, float64(d.Dead), d.Bot)
		ch <- prometheus.MustNewConstMetric(g.outbox, prometheus.GaugeValue, d.OutboxOldest.Seconds(), d.Bot)
	}
	var waiting int
	if err := g.r.db.Get(ctx, &waiting, `SELECT count(*) FROM lane WHERE pending = 1 AND owner = ''`); err != nil {
		ch <- prometheus.NewInvalidMetric(g.lanes, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(g.lanes, prometheus.GaugeValue, float64(g.r.o.Running()), "running")
	ch <- prometheus.MustNewConstMetric(g.lanes, prometheus.GaugeValue, float64(waiting), "waiting")
}
