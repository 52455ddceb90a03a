package connectors

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// Metrics are the metrics of a Hub. Every bot has a series for each phase: 1 for
// the current one, 0 for the others.
type Metrics struct {
	state *prometheus.GaugeVec
	polls *prometheus.GaugeVec // LastPoll, to end a bot's series with the bot
	waits *prometheus.GaugeVec // RetryAfter
}

// NewMetrics registers gatehouse_connector_state{bot,state} with reg; a nil
// reg leaves it unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gatehouse_connector_state",
		Help: "1 for the state each bot's connector is in, 0 for the others.",
	}, []string{"bot", "state"}), polls: LastPoll(reg), waits: RetryAfter(reg)}
	if reg != nil {
		reg.MustRegister(m.state)
	}
	return m
}

// show sets the phase of a bot.
func (m *Metrics) show(bot string, p core.Phase) {
	for _, phase := range core.Phases {
		v := 0.0
		if phase == p {
			v = 1
		}
		m.state.WithLabelValues(bot, string(phase)).Set(v)
	}
}

// forget deletes the series of a removed bot, which would look like the series of
// a bot that receives nothing.
func (m *Metrics) forget(bot string) {
	for _, vec := range []*prometheus.GaugeVec{m.state, m.polls, m.waits} {
		vec.DeletePartialMatch(prometheus.Labels{"bot": bot})
	}
}

// LastPoll returns gatehouse_poll_last_success_timestamp_seconds{bot}: the time of
// the last successful request for updates, or heartbeat. All platforms share the
// gauge; the first call registers it with reg, unless reg is nil.
func LastPoll(reg prometheus.Registerer) *prometheus.GaugeVec {
	return shared(reg, prometheus.GaugeOpts{
		Name: "gatehouse_poll_last_success_timestamp_seconds",
		Help: "When the platform last answered a poll or a heartbeat well; process start before that.",
	})
}

// RetryAfter returns gatehouse_retry_after_seconds{bot}, registered as by LastPoll.
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
