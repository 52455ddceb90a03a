// Package metrics has the Prometheus series of runs.
package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/orchestrator/call"
)

// Metrics are the runs' series. Model labels hold configured names only, else "other".
type Metrics struct {
	mu       sync.RWMutex
	models   []string // that labels may hold; at most maxModels
	runs     *prometheus.CounterVec
	duration prometheus.Histogram
	first    *prometheus.HistogramVec
	tools    []string
	used     *prometheus.CounterVec
	Stage    func(name string, d time.Duration) // gatehouse_gateway_overhead_seconds; nil: none
}

// maxModels bounds the names that the label model may hold: models can be
// changed while the gateway runs.
const maxModels = 100

var bounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

var outcomes = []string{"done", "aborted", "error"}

// New registers gatehouse_runs_total, gatehouse_run_duration_seconds,
// gatehouse_first_token_seconds and gatehouse_tool_calls_total with reg (nil:
// nowhere). models and tools are the names that labels may hold.
func New(reg prometheus.Registerer, models, tools []string) *Metrics {
	m := &Metrics{
		tools:    tools,
		used:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_tool_calls_total", Help: "Tool calls, by the turn's trust and how they ended."}, []string{"tool", "trust", "outcome"}),
		runs:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_runs_total", Help: "Finished runs, by how they ended."}, []string{"model", "outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gatehouse_run_duration_seconds", Help: "From the claim to the end of a run.", Buckets: bounds}),
		first:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gatehouse_first_token_seconds", Help: "From the request to the model's first word.", Buckets: bounds}, []string{"model"}),
	}
	m.Know(append(slices.Clone(models), "other"))
	for _, name := range append(slices.Clone(tools), "other") {
		for _, trust := range []core.Trust{core.Sandboxed, core.Vault, core.Full} {
			for _, o := range []string{call.OK, call.Error, call.Denied, call.Timeout, call.Aborted} {
				m.used.WithLabelValues(name, trust.String(), o)
			}
		}
	}
	if reg != nil {
		reg.MustRegister(m.runs, m.duration, m.first, m.used)
	}
	return m
}

// Know has further models counted by their names from now on, beginning at 0;
// beyond 100 names they are "other".
func (m *Metrics) Know(models []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range models {
		if slices.Contains(m.models, name) || len(m.models) >= maxModels {
			continue
		}
		m.models = append(m.models, name)
		for _, o := range outcomes {
			m.runs.WithLabelValues(name, o)
		}
		m.first.WithLabelValues(name)
	}
}

func (m *Metrics) label(model string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if slices.Contains(m.models, model) {
		return model
	}
	return "other"
}

// Prepared records how long a run took to its first request.
func (m *Metrics) Prepared(d time.Duration) {
	if m.Stage != nil {
		m.Stage("prepare", d)
	}
}

// FirstToken records how long the model took to its first text.
func (m *Metrics) FirstToken(model string, d time.Duration) {
	m.first.WithLabelValues(m.label(model)).Observe(d.Seconds())
}

// Ended counts a run that ended, and how long it took.
func (m *Metrics) Ended(model, outcome string, d time.Duration) {
	m.runs.WithLabelValues(m.label(model), outcome).Inc()
	m.duration.Observe(d.Seconds())
}

// Called counts a call of a tool.
func (m *Metrics) Called(tool string, trust core.Trust, outcome string) {
	if !slices.Contains(m.tools, tool) {
		tool = "other"
	}
	m.used.WithLabelValues(tool, trust.String(), outcome).Inc()
}
