package queue

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// Metrics are the queue's series; the names are docs/metrics.md's.
type Metrics struct {
	bots         []string // whose gauges always exist
	updatesTotal *prometheus.CounterVec
	deliveries   *prometheus.CounterVec
	overhead     *prometheus.HistogramVec
}

// Bounds of every duration histogram, in seconds.
var Bounds = []float64{.0005, .001, .002, .003, .005, .01, .015, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// Stages of gatehouse_gateway_overhead_seconds.
var Stages = []string{"ingest", "queue", "prepare", "first_token", "commit", "deliver"}

var (
	kinds      = []core.MessageKind{core.KindMessage, core.KindCommand, core.KindAnswer, core.KindCallback, core.KindEdit, core.KindReaction, core.KindService}
	outcomes   = []string{"ready", "held", "limited", "refused", "dropped", "blocked", "noted", "repeat", "malformed"}
	deliveries = [...]string{core.Sent: "sent", core.NotSent: "not_sent", core.RetryAfter: "retry_after", core.Refused: "refused", core.Unknown: "unknown"}
)

// NewMetrics registers the series with reg (nil: none) with every known label
// value of bots at 0.
func NewMetrics(reg prometheus.Registerer, bots []string) *Metrics {
	m := &Metrics{
		bots:         bots,
		updatesTotal: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_updates_total", Help: "Updates taken in, by what became of them."}, []string{"bot", "kind", "outcome"}),
		deliveries:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_deliveries_total", Help: "Sends to platforms, by how they ended."}, []string{"bot", "outcome"}),
		overhead:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gatehouse_gateway_overhead_seconds", Help: "The gateway's own time per stage of a message.", Buckets: Bounds}, []string{"stage"}),
	}
	if reg != nil {
		reg.MustRegister(m.updatesTotal, m.deliveries, m.overhead)
	}
	for _, s := range Stages {
		m.overhead.WithLabelValues(s)
	}
	for _, bot := range bots {
		m.zero(bot)
	}
	return m
}

// zero has every known label value of a bot exist.
func (m *Metrics) zero(bot string) {
	for _, k := range kinds {
		for _, o := range outcomes {
			m.updatesTotal.WithLabelValues(bot, string(k), o)
		}
	}
	for _, d := range deliveries {
		m.deliveries.WithLabelValues(bot, d)
	}
}

func (m *Metrics) updates(counts []counted) {
	for _, c := range counts {
		m.updatesTotal.WithLabelValues(c.bot, c.kind, c.outcome).Inc()
	}
}

func (m *Metrics) stage(name string, d time.Duration) {
	m.overhead.WithLabelValues(name).Observe(max(0, d).Seconds())
}

// Stage records the gateway's own time in a stage that another package measures.
func (m *Metrics) Stage(name string, d time.Duration) { m.stage(name, d) }

func (m *Metrics) delivery(bot string, o core.Outcome, d time.Duration) {
	m.deliveries.WithLabelValues(bot, deliveries[o]).Inc()
	m.stage("deliver", d)
}

// gauges asks the tables at scrape time, so that the figures always exist and
// never go stale. At most one scrape a second reads them.
type gauges struct {
	q                            *Queue
	depth, oldest, outbox, lanes *prometheus.Desc
}

// Gauges is the collector of gatehouse_inbox_depth, _oldest_ready_seconds,
// _outbox_oldest_seconds and _lanes.
func (q *Queue) Gauges() prometheus.Collector {
	return &gauges{
		q:      q,
		depth:  prometheus.NewDesc("gatehouse_inbox_depth", "Messages that wait to be answered.", []string{"bot"}, nil),
		oldest: prometheus.NewDesc("gatehouse_oldest_ready_seconds", "Age of the oldest message that waits.", []string{"bot"}, nil),
		outbox: prometheus.NewDesc("gatehouse_outbox_oldest_seconds", "Age of the oldest reply not yet delivered.", []string{"bot"}, nil),
		lanes:  prometheus.NewDesc("gatehouse_lanes", "Lanes with work: running or waiting.", []string{"state"}, nil),
	}
}

func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.depth
	ch <- g.oldest
	ch <- g.outbox
	ch <- g.lanes
}

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	depths, err := g.q.Depths(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(g.depth, err)
		return
	}
	for _, bot := range g.q.o.Metrics.bots { // also before Serve, and where nothing ever waited
		if !slices.ContainsFunc(depths, func(d Depth) bool { return d.Bot == bot }) {
			depths = append(depths, Depth{Bot: bot})
		}
	}
	for _, d := range depths {
		ch <- prometheus.MustNewConstMetric(g.depth, prometheus.GaugeValue, float64(d.Ready+d.Limited), d.Bot)
		ch <- prometheus.MustNewConstMetric(g.oldest, prometheus.GaugeValue, d.OldestReady.Seconds(), d.Bot)
		ch <- prometheus.MustNewConstMetric(g.outbox, prometheus.GaugeValue, d.OutboxOldest.Seconds(), d.Bot)
	}
	var waiting int
	if err := g.q.db.Get(ctx, &waiting, `SELECT count(*) FROM lane WHERE pending = 1 AND owner = ''`); err != nil {
		ch <- prometheus.NewInvalidMetric(g.lanes, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(g.lanes, prometheus.GaugeValue, float64(g.q.Running()), "running")
	ch <- prometheus.MustNewConstMetric(g.lanes, prometheus.GaugeValue, float64(waiting), "waiting")
}
