package council

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/council/choice"
)

// Metrics are the council's series.
type Metrics struct {
	queries  *prometheus.CounterVec
	disputes prometheus.Counter
	reviews  prometheus.Counter
	members  *prometheus.HistogramVec
}

// NewMetrics registers gatehouse_council_queries_total, _disputes_total,
// _reviews_total and _member_seconds with reg (nil: nowhere). Models of a council are
// configured, so the label model has few values.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		queries:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_council_queries_total", Help: "Questions that a council was asked, by level and how they ended."}, []string{"level", "outcome"}),
		disputes: prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_council_disputes_total", Help: "Questions whose answers contradict each other."}),
		reviews:  prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_council_reviews_total", Help: "Reviews of answers that were asked for."}),
		members:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gatehouse_council_member_seconds", Help: "Time of a call of a member.", Buckets: []float64{.0005, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 300}}, []string{"model"}),
	}
	m.members.WithLabelValues("other")
	for _, level := range choice.Levels() {
		for _, outcome := range []string{"done", "failed"} {
			m.queries.WithLabelValues(level, outcome)
		}
	}
	if reg != nil {
		reg.MustRegister(m.queries, m.disputes, m.reviews, m.members)
	}
	return m
}

func (m *Metrics) ended(level, outcome string, disputed bool) {
	m.queries.WithLabelValues(level, outcome).Inc()
	if disputed {
		m.disputes.Inc()
	}
}

func (m *Metrics) took(model string, d time.Duration) {
	m.members.WithLabelValues(model).Observe(d.Seconds())
}
