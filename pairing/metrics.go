package pairing

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/pairing/metrics"
)

// Metrics counts what the gate decides. Labels are bot names and closed lists,
// never users or chats.
type Metrics struct {
	decisions *prometheus.CounterVec
	denied    *prometheus.CounterVec
	bots      []string
}

// Decisions are the label values of gatehouse_pairing_total.
var Decisions = []string{"requested", "approved", "denied", "blocked", "undone", "expired", "revoked", "claimed", "invited", "linked"}

// Rules are the label values that the gate gives gatehouse_denied_total.
var Rules = []string{ruleShared, ruleBot, ruleBlocked, ruleStranger, ruleCoolOff, rulePolicy, rulePlace, ruleUnaddressed, ruleFlood, ruleClaim}

// NewMetrics registers the series with reg (nil: none), every known label
// value of bots at 0. gatehouse_denied_total is shared with anyone who registered
// it before.
func NewMetrics(reg prometheus.Registerer, bots []string) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_pairing_total", Help: "Pairing requests and what was decided about people."}, []string{"bot", "decision"}),
		denied:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_denied_total", Help: "Refusals, by the rule that decided."}, []string{"rule"}),
		bots:      bots,
	}
	if reg != nil {
		m.decisions, m.denied = register(reg, m.decisions), register(reg, m.denied)
	}
	for _, r := range Rules {
		m.denied.WithLabelValues(r)
	}
	for _, bot := range bots {
		for _, d := range Decisions {
			m.decisions.WithLabelValues(bot, d)
		}
	}
	return m
}

func register(reg prometheus.Registerer, c *prometheus.CounterVec) *prometheus.CounterVec {
	var there prometheus.AlreadyRegisteredError
	if err := reg.Register(c); errors.As(err, &there) {
		if old, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
			return old
		}
	}
	return c
}

// Gauges returns the collector of gatehouse_pairing_pending.
func (g *Gate) Gauges() prometheus.Collector {
	return metrics.Pending(g.db, g.clock, func() []string {
		names := slices.Clone(g.metrics.bots)
		for _, b := range g.bots.List() {
			names = append(names, b.Name)
		}
		return names
	})
}
