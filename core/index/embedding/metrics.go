package embedding

import "github.com/prometheus/client_golang/prometheus"

// Metrics are those of an embedder. They exist without one too, so that a dashboard has
// them from the start.
type Metrics struct {
	passages *prometheus.GaugeVec
	requests *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		passages: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gatehouse_index_passages", Help: "Passages of the index, by whether the embedding model has read them. Zero without one."}, []string{"state"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_index_embedding_requests_total", Help: "Requests to the embedding server, by outcome."}, []string{"outcome"}),
	}
	for _, state := range [...]string{"embedded", "pending"} {
		m.passages.WithLabelValues(state)
	}
	for _, outcome := range [...]string{"ok", "error"} {
		m.requests.WithLabelValues(outcome)
	}
	if reg != nil {
		reg.MustRegister(m.passages, m.requests)
	}
	return m
}

func (m *Metrics) progress(done, all int64) {
	m.passages.WithLabelValues("embedded").Set(float64(done))
	m.passages.WithLabelValues("pending").Set(float64(all - done))
}

func (m *Metrics) asked(err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.requests.WithLabelValues(outcome).Inc()
}
