package usage

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Other is the model label of every model that is not configured.
const Other = "other"

var directions = [...]string{"input", "output", "cache_read", "cache_write"}

// Metrics are the ledger's counters. The label model holds configured names
// only, else Other.
type Metrics struct {
	tokens  *prometheus.CounterVec
	cost    *prometheus.CounterVec
	refused *prometheus.CounterVec

	mu    sync.RWMutex
	known map[string]bool // names that the label model may hold; at most maxModels
}

// maxModels bounds the names that the label model may hold: models can be
// changed while the gateway runs.
const maxModels = 100

// NewMetrics registers with reg (nil: nowhere) gatehouse_tokens_total{model,
// direction}, gatehouse_cost_usd_total{model} and
// gatehouse_budget_refusals_total{scope}, at 0 for every configured
// model and Other.
func NewMetrics(reg prometheus.Registerer, models []string) *Metrics {
	m := &Metrics{
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_tokens_total", Help: "Tokens of settled model calls, as the provider counted them.",
		}, []string{"model", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_cost_usd_total", Help: "Cost of settled model calls in US dollars, where a price is known.",
		}, []string{"model"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_budget_refusals_total", Help: "Model calls that a used-up budget has refused.",
		}, []string{"scope"}),
		known: map[string]bool{},
	}
	for _, scope := range scopes {
		m.refused.WithLabelValues(scope)
	}
	m.Know(append([]string{Other}, models...))
	if reg != nil {
		reg.MustRegister(m.tokens, m.cost, m.refused)
	}
	return m
}

// Know adds models that are counted by name, from 0; beyond 100 names they are
// counted as Other.
func (m *Metrics) Know(models []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range models {
		if m.known[name] || len(m.known) >= maxModels {
			continue
		}
		m.known[name] = true
		m.cost.WithLabelValues(name)
		for _, d := range directions {
			m.tokens.WithLabelValues(name, d)
		}
	}
}

func (m *Metrics) label(model string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.known[model] {
		return Other
	}
	return model
}

func (m *Metrics) count(r Row) {
	model := m.label(r.Model)
	for i, n := range [...]int64{r.Input, r.Output, r.CacheRead, r.CacheWrite} {
		if n > 0 {
			m.tokens.WithLabelValues(model, directions[i]).Add(float64(n))
		}
	}
	if r.MicroUSD != nil && *r.MicroUSD > 0 {
		m.cost.WithLabelValues(model).Add(float64(*r.MicroUSD) / 1e6)
	}
}
