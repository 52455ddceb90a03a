package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// Metrics are the queue's series; the names are docs/metrics.md's.
type Metrics struct {
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
		m.AddBot(bot)
	}
	return m
}

// AddBot makes every known label value of a bot exist.
func (m *Metrics) AddBot(bot string) {
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

// Delivered counts a send and how long it took.
func (m *Metrics) Delivered(bot string, o core.Outcome, d time.Duration) {
	m.deliveries.WithLabelValues(bot, deliveries[o]).Inc()
	m.stage("deliver", d)
}
