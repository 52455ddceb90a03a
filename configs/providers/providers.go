// Package providers reads the file that names further providers of language
// models, with their addresses, keys, models and prices.
package providers

import (
	"reflect"
	"slices"

	"gatehouse/configs/values"
)

// Limits of a file.
const (
	maxFile      = 256 << 10 // bytes
	maxProviders = 32
	maxModels    = 64 // of one provider
	maxPrices    = 256
	maxPrice     = 1e6 // USD per million tokens: more is a typo
	minWindow    = 1_000
	maxWindow    = 100_000_000
)

// The kinds of providers, by the API that they have.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// A List is the content of a file. The zero value names nothing.
type List struct {
	Providers []Provider
	Prices    map[string]Price // by the whole name of a model of any provider
	Searches  map[string]float64
	files     []string // that were read
}

// A Provider is a server with language models. Its models are named NAME/MODEL.
type Provider struct {
	Name    string
	Kind    string        // Anthropic or OpenAI
	BaseURL string        // "" is the kind's own
	Key     values.Secret // not set: none is sent
	Models  []Model       // that can be chosen by name
	Where   string        // file:line, to name it in messages
}

// A Model is one model of a provider.
type Model struct {
	Name   string // without the provider's
	Window int    // tokens of context; 0 unknown
}

// A Price is what a million tokens cost, in USD. CacheRead and CacheWrite are nil
// where they cost what Input does.
type Price struct {
	Input      float64
	Output     float64
	CacheRead  *float64
	CacheWrite *float64
}

// Named returns the provider of that name; nil if there is none, or l is nil.
func (l *List) Named(name string) *Provider {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.Providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &l.Providers[i]
}

// Names returns the providers' names in the order of the file.
func (l *List) Names() (names []string) {
	for _, p := range l.Providers {
		names = append(names, p.Name)
	}
	return names
}

// Secrets returns the keys that were read.
func (l *List) Secrets() (list []values.Secret) {
	for _, p := range l.Providers {
		if p.Key.IsSet() {
			list = append(list, p.Key)
		}
	}
	return list
}

// Same reports whether two lists are the same, keys too.
func (l *List) Same(other *List) bool { return reflect.DeepEqual(l, other) }
