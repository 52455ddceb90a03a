// Package metrics has the series of the queue and its outbox; their names are
// docs/metrics.md's.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// Metrics counts updates and deliveries, and times the stages of a message.
type Metrics struct {
	updatesTotal *prometheus.CounterVec
	deliveries   *prometheus.CounterVec
	overhead     *prometheus.HistogramVec
}

// bounds of every duration histogram, in seconds.
var bounds = []float64{.0005, .001, .002, .003, .005, .01, .015, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// stages of gatehouse_gateway_overhead_seconds.
var stages = []string{"ingest", "queue", "prepare", "first_token", "commit", "deliver"}

var (
	kinds      = []core.MessageKind{core.KindMessage, core.KindCommand, core.KindAnswer, core.KindCallback, core.KindEdit, core.KindReaction, core.KindService}
	outcomes   = []string{"ready", "held", "limited", "refused", "dropped", "blocked", "noted", "repeat", "malformed"}
	deliveries = [...]string{core.Sent: "sent", core.NotSent: "not_sent", core.RetryAfter: "retry_after", core.Refused: "refused", core.Unknown: "unknown"}
)

// New registers the series with reg (nil: none) with every known label
// value of bots at 0.
func New(reg prometheus.Registerer, bots []string) *Metrics {
	m := &Metrics{
		updatesTotal: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_updates_total", Help: "Updates taken in, by what became of them."}, []string{"bot", "kind", "outcome"}),
		deliveries:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_deliveries_total", Help: "Sends to platforms, by how they ended."}, []string{"bot", "outcome"}),
		overhead:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gatehouse_gateway_overhead_seconds", Help: "The gateway's own time per stage of a message.", Buckets: bounds}, []string{"stage"}),
	}
	if reg != nil {
		reg.MustRegister(m.updatesTotal, m.deliveries, m.overhead)
	}
	for _, s := range stages {
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

// Updated counts an update by what became of it.
func (m *Metrics) Updated(bot, kind, outcome string) {
	m.updatesTotal.WithLabelValues(bot, kind, outcome).Inc()
}

// Stage records the gateway's own time in a stage of a message.
func (m *Metrics) Stage(name string, d time.Duration) {
	m.overhead.WithLabelValues(name).Observe(max(0, d).Seconds())
}

// Delivered counts a send and how long it took.
func (m *Metrics) Delivered(bot string, o core.Outcome, d time.Duration) {
	m.deliveries.WithLabelValues(bot, deliveries[o]).Inc()
	m.Stage("deliver", d)
}
