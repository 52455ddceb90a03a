package models

import (
	"fmt"
	"maps"
	"sync/atomic"

	"gatehouse/configs"
	"gatehouse/configs/providers"
	"gatehouse/core"
	"gatehouse/core/llm"
)

// Prices are what models cost: as MODEL_PRICES has it, else PROVIDERS_FILE, else
// the built-in list. They are safe for concurrent use.
type Prices struct {
	builtIn, set *llm.Prices
	now          atomic.Pointer[llm.Prices]
}

// NewPrices returns the prices of cfg.
func NewPrices(cfg *configs.Config) (*Prices, error) {
	builtIn, err := llm.ParsePrices(configs.Prices())
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	set := make(map[string]llm.Price, len(cfg.ModelPrices)) // one per model in the setting
	for name, p := range cfg.ModelPrices {
		set[name] = llm.Price{Input: p.Input, Output: p.Output}
	}
	p := &Prices{builtIn: builtIn, set: llm.FixedPrices(set, nil)}
	p.Use(cfg.Providers().Now())
	return p, nil
}

// Use has the prices of list apply from the next call on.
func (p *Prices) Use(list *providers.List) {
	file := make(map[string]llm.Price, len(list.Prices))
	for name, x := range list.Prices {
		file[name] = llm.Price(x)
	}
	p.now.Store(p.builtIn.With(llm.FixedPrices(file, maps.Clone(list.Searches))).With(p.set))
}

// Cost returns what u costs on model, as llm.Prices.Cost does.
func (p *Prices) Cost(model string, u core.Tokens) (microUSD int64, known bool) {
	return p.now.Load().Cost(model, u)
}
