package crawl

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	documents *prometheus.GaugeVec
	passes    prometheus.Counter
	last      prometheus.Gauge
	took      prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, now time.Time) metrics {
	m := metrics{
		documents: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gatehouse_index_documents", Help: "Files of the vault with text, by whether they are indexed."}, []string{"state"}),
		passes:    prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_index_passes_total", Help: "Passes over the whole vault that were finished."}),
		last:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_index_last_pass_timestamp_seconds", Help: "When the last finished pass over the whole vault ended (at start: when the program began)."}),
		took:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_index_pass_seconds", Help: "How long the last finished pass over the whole vault took."}),
	}
	for _, state := range [...]string{"indexed", "fault"} {
		m.documents.WithLabelValues(state)
	}
	m.last.Set(float64(now.Unix()))
	if reg != nil {
		reg.MustRegister(m.documents, m.passes, m.last, m.took)
	}
	return m
}

func (m metrics) counted(indexed, faults int) {
	m.documents.WithLabelValues("indexed").Set(float64(indexed))
	m.documents.WithLabelValues("fault").Set(float64(faults))
}

func (m metrics) passed(at time.Time, took time.Duration) {
	m.passes.Inc()
	m.last.Set(float64(at.UnixNano()) / 1e9)
	m.took.Set(took.Seconds())
}
