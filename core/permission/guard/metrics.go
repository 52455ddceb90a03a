package guard

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/permission"
)

// Metrics are the guard's counters.
type Metrics struct{ denied *prometheus.CounterVec }

// NewMetrics registers gatehouse_denied_total{rule} with reg (nil: nowhere), at 0
// for each of permission.DenyRules. It is shared with anyone who registered it before.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_denied_total", Help: "Refusals, by the rule that decided."}, []string{"rule"})}
	if reg != nil {
		var there prometheus.AlreadyRegisteredError
		if err := reg.Register(m.denied); errors.As(err, &there) {
			if old, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
				m.denied = old
			}
		}
	}
	for _, r := range permission.DenyRules {
		m.denied.WithLabelValues(r)
	}
	return m
}

func (m *Metrics) count(d permission.Decision) {
	if m != nil && d.Verdict == permission.Deny && slices.Contains(permission.DenyRules, d.Rule) {
		m.denied.WithLabelValues(d.Rule).Inc()
	}
}
