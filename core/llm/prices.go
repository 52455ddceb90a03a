package llm

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/goccy/go-yaml"

	"gatehouse/core"
)

// maxPriceFile bounds what ParsePrices reads, in bytes.
const maxPriceFile = 1 << 20

// maxCost bounds what Cost states, in micro-USD, so that sums do not overflow.
const maxCost = 1 << 62

// A Price is what one million tokens cost, in USD; that is micro-USD per
// token. CacheRead and CacheWrite fall back to Input where they are absent.
type Price struct {
	Input      float64  `yaml:"input"`
	Output     float64  `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
}

// Prices are the known prices by model name ("openai/gpt-4o-mini"). The zero
// value and nil know none but local models, which are free. It is safe for
// use by many goroutines.
type Prices struct {
	models   map[string]Price
	searches map[string]float64
}

type priceFile struct {
	AsOf   string           `yaml:"as_of"` // the day the figures were looked up, for readers
	Models map[string]Price `yaml:"models"`
	// Searches are USD for a thousand web searches, by provider ("anthropic").
	Searches map[string]float64 `yaml:"searches"`
}

// ParsePrices reads a price list: `models:` maps names to Price fields.
// Unknown fields, negative and non-finite prices are errors that name the model.
func ParsePrices(b []byte) (*Prices, error) {
	if len(b) > maxPriceFile {
		return nil, fmt.Errorf("prices: %d bytes are more than the allowed %d", len(b), maxPriceFile)
	}
	var f priceFile
	if len(bytes.TrimSpace(b)) > 0 {
		if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("prices: %w", err)
		}
	}
	for name, p := range f.Models {
		for _, v := range []*float64{&p.Input, &p.Output, p.CacheRead, p.CacheWrite} {
			if v != nil && (!(*v >= 0) || math.IsInf(*v, 0)) {
				return nil, fmt.Errorf("prices: %s: a price must be zero or more, got %v", name, *v)
			}
		}
	}
	for provider, v := range f.Searches {
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("prices: searches of %s: a price must be zero or more, got %v", provider, v)
		}
	}
	return &Prices{models: f.Models, searches: f.Searches}, nil
}

// FixedPrices returns a list of prices by model name, and of USD for a thousand web
// searches by provider, as the operator sets them.
func FixedPrices(models map[string]Price, searches map[string]float64) *Prices {
	return &Prices{models: maps.Clone(models), searches: maps.Clone(searches)}
}

// With returns p with over's prices in front: an operator's list over the built-in one.
func (p *Prices) With(over *Prices) *Prices {
	out, searches := map[string]Price{}, map[string]float64{}
	for _, list := range []*Prices{p, over} {
		if list != nil {
			maps.Copy(out, list.models)
			maps.Copy(searches, list.searches)
		}
	}
	return &Prices{models: out, searches: searches}
}

// snapshot is the date that providers append to a model's name.
var snapshot = core.Pattern(`-(\d{4}-\d{2}-\d{2}|\d{8})$`)

// Cost returns what u costs on model in millionths of a USD, rounded up. known is
// false where the list has no price for the model: the cost is then not zero
// but unknown. A dated snapshot ("…-2024-07-18") costs what its model costs;
// "local/…" costs nothing. Searches cost what their provider takes for them.
func (p *Prices) Cost(model string, u core.Tokens) (microUSD int64, known bool) {
	if strings.HasPrefix(model, "local/") {
		return 0, true
	}
	if p == nil {
		return 0, false
	}
	price, ok := p.models[model]
	if !ok {
		price, ok = p.models[snapshot().ReplaceAllString(model, "")]
	}
	if !ok {
		return 0, false
	}
	sum := float64(u.Input)*price.Input + float64(u.Output)*price.Output +
		float64(u.CacheRead)*orInput(price.CacheRead, price.Input) +
		float64(u.CacheWrite)*orInput(price.CacheWrite, price.Input)
	if u.Searches > 0 {
		provider, _, _ := strings.Cut(model, "/")
		each, ok := p.searches[provider]
		if !ok {
			return 0, false
		}
		sum += float64(u.Searches) * each * 1000 // USD a thousand are thousands of micro-USD each
	}
	// A ten-thousandth is taken off before rounding up, so that binary
	// fractions (0.15 × 20) do not cost a micro-USD too much.
	sum = math.Ceil(sum - 1e-4)
	return int64(min(max(sum, 0), maxCost)), true
}

func orInput(p *float64, input float64) float64 {
	if p == nil {
		return input
	}
	return *p
}
