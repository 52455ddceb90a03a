package mcp

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	calls    *prometheus.CounterVec // call: a tool, or another method that is counted; success: true or false
	sessions prometheus.Gauge
}

// newMetrics registers them with reg; nil: nowhere.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_mcp_calls_total", Help: "Calls of other agents over MCP, by tool and success.",
		}, []string{"call", "success"}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatehouse_mcp_sessions", Help: "Sessions of other agents over MCP that are open now.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.sessions)
	}
	return m
}

// know has the calls counted from 0.
func (m *metrics) know(calls ...string) {
	for _, call := range calls {
		m.calls.WithLabelValues(call, "true")
		m.calls.WithLabelValues(call, "false")
	}
}

func (m *metrics) called(call string, failed bool) {
	m.calls.WithLabelValues(call, strconv.FormatBool(!failed)).Inc()
}
