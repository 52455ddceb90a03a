package connectors

import (
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
