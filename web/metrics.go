package web

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics of this package.
type Metrics struct {
	streams prometheus.Gauge
}

// NewMetrics registers them with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{streams: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gatehouse_sse_streams", Help: "Event streams that are open now.",
	})}
	reg.MustRegister(m.streams)
	return m
}

func unregistered() *Metrics { return NewMetrics(prometheus.NewRegistry()) }

// MetricsPage shows what g has gathered, in the text format of Prometheus. On
// a listener of its own it stands open; elsewhere put a check in front.
func MetricsPage(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
