package memory

import (
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/memory/detect"
)

// Metrics of the memory.
type Metrics struct {
	messages *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	used     prometheus.Counter
	checks   *prometheus.CounterVec
}

// NewMetrics registers the metrics of the memory; a nil registry registers none.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_memory_messages_total", Help: "Messages that were read for corrections, by the layer that found one; none for most."}, []string{"layer"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_memory_learnt_total", Help: "Corrections in messages, by what became of them."}, []string{"fate"}),
		used:     prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_memory_used_total", Help: "Corrections that were in the prompt of a finished answer."}),
		checks:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_memory_checks_total", Help: "Answers against what a user wants of them, by result."}, []string{"check"}),
	}
	for _, l := range []detect.Layer{detect.None, detect.Explicit, detect.Rules, detect.Implicit} {
		m.messages.WithLabelValues(nameOf(l))
	}
	for _, o := range []Outcome{Stored, Asked, Secret, Full} {
		m.outcomes.WithLabelValues(string(o))
	}
	for _, kind := range []string{EventFollowed, EventViolated, EventRewritten} {
		m.checks.WithLabelValues(kind)
	}
	if reg != nil {
		reg.MustRegister(m.messages, m.outcomes, m.used, m.checks)
	}
	return m
}

func nameOf(l detect.Layer) string {
	if l == detect.None {
		return "none"
	}
	return string(l)
}

func (m *Metrics) heard(l detect.Layer) { m.messages.WithLabelValues(nameOf(l)).Inc() }

func (m *Metrics) learnt(o Outcome) {
	if o != Nothing {
		m.outcomes.WithLabelValues(string(o)).Inc()
	}
}
