package pairing

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
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

// Gauges returns the collector of gatehouse_pairing_pending, which asks the table
// at scrape time.
func (g *Gate) Gauges() prometheus.Collector {
	return &gauges{g, prometheus.NewDesc("gatehouse_pairing_pending", "Pairing requests that wait for a decision.", []string{"bot"}, nil)}
}

type gauges struct {
	gate *Gate
	desc *prometheus.Desc
}

func (g *gauges) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var rows []struct {
		Bot string `db:"bot"`
		N   int    `db:"n"`
	}
	err := g.gate.db.Select(ctx, &rows, `SELECT bot, count(*) AS n FROM pairing_requests WHERE status = 'pending' AND expires_at > $1 GROUP BY bot`,
		core.Stamp(g.gate.clock.Now()))
	if err != nil {
		ch <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	n := map[string]int{} // bounded by the configured bots
	for _, bot := range g.gate.metrics.bots {
		n[bot] = 0
	}
	for _, x := range g.gate.bots.List() {
		n[x.Name] = 0
	}
	for _, r := range rows {
		if _, ok := n[r.Bot]; ok {
			n[r.Bot] = r.N
		}
	}
	for bot, v := range n {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(v), bot)
	}
}
