package schedule

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
)

// Metrics counts the runs of daily agents.
type Metrics struct {
	clock core.Clock
	runs  *prometheus.CounterVec
	last  *prometheus.GaugeVec

	mu    sync.Mutex
	names map[string]bool // labels so far, at most daily.MaxAgents
}

// other is the label of agents beyond the limit.
const other = "other"

// NewMetrics returns metrics in reg.
func NewMetrics(reg prometheus.Registerer, clock core.Clock) *Metrics {
	m := &Metrics{clock: clock, names: map[string]bool{},
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_schedule_runs_total", Help: "Runs of daily agents that ended."}, []string{"agent", "result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gatehouse_schedule_last_success_timestamp_seconds",
			Help: "When each daily agent last ended well (before that: when it was first seen)."}, []string{"agent"})}
	m.begin(other)
	reg.MustRegister(m.runs, m.last)
	return m
}

// know has the agents be counted by name, from 0 on.
func (m *Metrics) know(agents []daily.Agent) {
	for i := range agents {
		m.label(agents[i].Name)
	}
}

// label returns the label of an agent: "other" for those beyond the limit.
func (m *Metrics) label(agent string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[agent] {
		return agent
	}
	if len(m.names) >= daily.MaxAgents {
		return other
	}
	m.names[agent] = true
	m.begin(agent)
	return agent
}

// begin has the series of a label be there, as if it had just ended well.
func (m *Metrics) begin(agent string) {
	for _, r := range daily.Results {
		m.runs.WithLabelValues(agent, r)
	}
	m.last.WithLabelValues(agent).Set(float64(m.clock.Now().Unix()))
}

func (m *Metrics) ended(agent, result string, at time.Time) {
	agent = m.label(agent)
	m.runs.WithLabelValues(agent, result).Inc()
	if result == daily.Completed || result == daily.CompletedNoOutput {
		m.last.WithLabelValues(agent).Set(float64(at.Unix()))
	}
}
