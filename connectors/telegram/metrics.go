package telegram

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/connectors"
)

// Metrics are shared by all Telegram bots; their label is the bot's
// configured name.
type Metrics struct {
	lastPoll   *prometheus.GaugeVec
	retryAfter *prometheus.GaugeVec
}

// NewMetrics registers gatehouse_poll_last_success_timestamp_seconds{bot} and
// gatehouse_retry_after_seconds{bot} with reg; a nil reg leaves them
// unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{lastPoll: connectors.LastPoll(reg), retryAfter: connectors.RetryAfter(reg)}
}

func (m *Metrics) start(bot string, now time.Time) {
	m.polled(bot, now)
	m.retryAfter.WithLabelValues(bot).Set(0)
}

func (m *Metrics) polled(bot string, at time.Time) {
	m.lastPoll.WithLabelValues(bot).Set(float64(at.UnixMilli()) / 1000)
}

func (m *Metrics) asked(bot string, wait time.Duration) {
	m.retryAfter.WithLabelValues(bot).Set(wait.Seconds())
}
