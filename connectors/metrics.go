package connectors

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// Metrics are the Hub's figures. Every bot has all phases from its start on,
// one of them 1, the others 0.
type Metrics struct {
	state *prometheus.GaugeVec
}

// NewMetrics registers gatehouse_connector_state{bot,state} with reg; a nil
// reg leaves it unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gatehouse_connector_state",
		Help: "1 for the state each bot's connector is in, 0 for the others.",
	}, []string{"bot", "state"})}
	if reg != nil {
		reg.MustRegister(m.state)
	}
	return m
}

// show makes p the one phase of bot.
func (m *Metrics) show(bot string, p core.Phase) {
	for _, phase := range core.Phases {
		v := 0.0
		if phase == p {
			v = 1
		}
		m.state.WithLabelValues(bot, string(phase)).Set(v)
	}
}

// LastPoll is gatehouse_poll_last_success_timestamp_seconds{bot}: when the
// platform last answered a request for updates, or a heartbeat, well. It is one
// gauge for all platforms, registered with reg by whoever asks first; a nil reg
// leaves it unregistered.
func LastPoll(reg prometheus.Registerer) *prometheus.GaugeVec {
	return shared(reg, prometheus.GaugeOpts{
		Name: "gatehouse_poll_last_success_timestamp_seconds",
		Help: "When the platform last answered a poll or a heartbeat well; process start before that.",
	})
}

// RetryAfter is gatehouse_retry_after_seconds{bot}; otherwise like LastPoll.
func RetryAfter(reg prometheus.Registerer) *prometheus.GaugeVec {
	return shared(reg, prometheus.GaugeOpts{
		Name: "gatehouse_retry_after_seconds",
		Help: "The wait the platform asked for with its last refusal for pace; 0 again once it takes a message.",
	})
}

func shared(reg prometheus.Registerer, o prometheus.GaugeOpts) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(o, []string{"bot"})
	if reg == nil {
		return vec
	}
	err := reg.Register(vec)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if first, ok := known.ExistingCollector.(*prometheus.GaugeVec); ok {
			return first
		}
	}
	if err != nil {
		panic(err) // the same name with another form: a mistake in this file
	}
	return vec
}
