package models

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gatehouse/configs"
	"gatehouse/configs/providers"
	"gatehouse/core"
	"gatehouse/core/llm"
)

// Prices are what models cost: as MODEL_PRICES has it, else PROVIDERS_FILE, else
// the built-in list. They are safe for concurrent use.
type Prices struct {
	set *llm.Prices
	now atomic.Pointer[func() *llm.Prices] // made by the first call that needs it
}

// builtIn returns the list of this program.
var builtIn = sync.OnceValue(func() *llm.Prices {
	p, err := llm.ParsePrices(configs.Prices())
	if err != nil {
		panic(fmt.Errorf("prices: %w", err)) // a test parses it
	}
	return p
})

// NewPrices returns the prices of cfg.
func NewPrices(cfg *configs.Config) *Prices {
	set := make(map[string]llm.Price, len(cfg.ModelPrices)) // one per model in the setting
	for name, p := range cfg.ModelPrices {
		set[name] = llm.Price{Input: p.Input, Output: p.Output}
	}
	p := &Prices{set: llm.FixedPrices(set, nil)}
	p.Use(cfg.Providers().Now())
	return p
}

// Use has the prices of list apply from the next call on.
func (p *Prices) Use(list *providers.List) {
	file := make(map[string]llm.Price, len(list.Prices))
	for name, x := range list.Prices {
		file[name] = llm.Price(x)
	}
	over := llm.FixedPrices(file, list.Searches)
	now := sync.OnceValue(func() *llm.Prices { return builtIn().With(over).With(p.set) })
	p.now.Store(&now)
}

// Cost returns what u costs on model, as llm.Prices.Cost does.
func (p *Prices) Cost(model string, u core.Tokens) (microUSD int64, known bool) {
	return (*p.now.Load())().Cost(model, u)
}
