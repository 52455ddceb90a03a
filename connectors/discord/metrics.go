package discord

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/connectors"
)

// What may become of a RESUME.
const (
	resumed = "resumed" // the session goes on, nothing was missed
	refused = "refused" // the session is gone: a new one starts, the channels are read back
)

// Metrics are shared by all Discord bots; their label is the bot's configured
// name.
type Metrics struct {
	resumes    *prometheus.CounterVec
	lastPoll   *prometheus.GaugeVec
	retryAfter *prometheus.GaugeVec
}

// NewMetrics registers gatehouse_discord_resumes_total{bot,result} with reg,
// result being resumed or refused, and the gauges that all platforms share
// (connectors.LastPoll, connectors.RetryAfter); a nil reg leaves them
// unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{lastPoll: connectors.LastPoll(reg), retryAfter: connectors.RetryAfter(reg), resumes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_discord_resumes_total",
		Help: "Tries to go on with a gateway session, by how they ended.",
	}, []string{"bot", "result"})}
	if reg != nil {
		reg.MustRegister(m.resumes)
	}
	return m
}

func (m *Metrics) start(bot string, now time.Time) {
	m.alive(bot, now)
	m.asked(bot, 0)
	m.resumes.WithLabelValues(bot, resumed)
	m.resumes.WithLabelValues(bot, refused)
}

func (m *Metrics) resume(bot, result string) { m.resumes.WithLabelValues(bot, result).Inc() }

func (m *Metrics) alive(bot string, at time.Time) {
	m.lastPoll.WithLabelValues(bot).Set(float64(at.UnixMilli()) / 1000)
}

func (m *Metrics) asked(bot string, wait time.Duration) {
	m.retryAfter.WithLabelValues(bot).Set(wait.Seconds())
}
