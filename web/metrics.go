package web

import (
	"net/http"
	"net/netip"
	"strings"

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

// Scraped adds to h, which is on a listener of its own and asks for
// no key, what keeps web pages out. Programs reach it by an address, by a name
// of this machine or of a network without dots, and by o's hosts: no page can
// have such a name lead here but its own.
func Scraped(h http.Handler, o SiteOptions) (http.Handler, error) {
	s, err := NewSite(o)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header(), Caller{})
		_, err := netip.ParseAddr(hostname(r.Host))
		inside := err == nil || hostname(r.Host) != "" && !strings.ContainsAny(hostname(r.Host), "./@,")
		switch {
		case !inside && !s.answersTo(r.Host):
			WriteProblem(w, r, Refuse(Misdirected, "this server does not answer for the host in the request"))
		case s.foreign(r, true):
			WriteProblem(w, r, Refuse(ForeignOrigin, "a page of another origin made this request"))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			WriteProblem(w, r, Refuse(MethodNotAllowed, "this address takes GET"))
		default:
			h.ServeHTTP(w, r)
		}
	}), nil
}

// MetricsPage shows what g has gathered, in the text format of Prometheus. On
// a listener of its own it follows Scraped; elsewhere put a check in front.
func MetricsPage(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
