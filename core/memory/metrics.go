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
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_memory_learnt_total", Help: "Corrections in messages, by what became of them."}, []string{"outcome"}),
		used:     prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_memory_used_total", Help: "Corrections that were in the prompt of a finished answer."}),
		checks:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_memory_checks_total", Help: "Checks of answers against instructions, by result."}, []string{"result"}),
	}
	if reg != nil {
		reg.MustRegister(m.messages, m.outcomes, m.used, m.checks)
	}
	return m
}

func (m *Metrics) heard(l detect.Layer) {
	name := string(l)
	if name == "" {
		name = "none"
	}
	m.messages.WithLabelValues(name).Inc()
}

func (m *Metrics) learnt(o Outcome) {
	if o != Nothing {
		m.outcomes.WithLabelValues(string(o)).Inc()
	}
}
