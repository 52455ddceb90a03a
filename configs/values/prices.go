package values

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Price is what a million tokens cost, in USD.
type Price struct{ Input, Output float64 }

// Prices are prices by the model's name, PROVIDER/NAME, as PROVIDER/NAME=INPUT:OUTPUT with
// commas between; at most maxPrices.
type Prices map[string]Price

const maxPrices = 64

// maxPrice bounds a price, in USD per million tokens: more is a typo.
const maxPrice = 1e6

// Decode takes the list from the environment.
func (p *Prices) Decode(value string) error {
	*p = nil
	return eachNamed(value, "NAME=INPUT:OUTPUT", func(name, text string) error {
		in, out, ok := strings.Cut(text, ":")
		price, err := priceOf(in, out)
		if !ok || err != nil {
			return fmt.Errorf("%q of %s is not INPUT:OUTPUT, two numbers of USD per million tokens from 0 to %v", text, name, maxPrice)
		}
		if provider, model, _ := strings.Cut(name, "/"); provider == "" || model == "" {
			return fmt.Errorf("%q is not PROVIDER/NAME", name)
		}
		if len(*p) == maxPrices {
			return fmt.Errorf("at most %d models", maxPrices)
		}
		if *p == nil {
			*p = Prices{}
		}
		(*p)[name] = price
		return nil
	})
}

func priceOf(in, out string) (p Price, err error) {
	for dest, text := range map[*float64]string{&p.Input: in, &p.Output: out} {
		if *dest, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
			return p, err
		}
		if !(*dest >= 0 && *dest <= maxPrice) || math.IsNaN(*dest) {
			return p, fmt.Errorf("%v is out of range", *dest)
		}
	}
	return p, nil
}

func (p Prices) String() string {
	var list List
	for _, name := range p.Models() {
		list = append(list, fmt.Sprintf("%s=%v:%v", name, p[name].Input, p[name].Output))
	}
	return list.String()
}

// Models returns the names of the models, sorted.
func (p Prices) Models() List { return slices.Sorted(maps.Keys(p)) }
