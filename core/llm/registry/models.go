// Package registry makes the configured language models and resolves their
// names: the default model, its fallbacks, the guests' and the one that titles
// conversations.
package registry

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/health"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/quote"
)

// A Config has the names of the models and how their providers are reached.
type Config struct {
	Model     string         // "anthropic/NAME", "openai/NAME" or "local/quote"; "": the first provider with access, else local/quote
	Fallbacks []string       // asked in turn when Model fails
	Guest     string         // answers guests; "": Model does
	Title     string         // names conversations; "": none does
	Windows   map[string]int // tokens of context by a model's name; others as far as they are known
	Anthropic Access
	OpenAI    Access
	Others    []Other  // further providers, by name
	Council   []string // members of the council; none: there is no council
	Judge     string   // who judges their answers; "": a member does
	Elsewhere string   // prefix of names that another runtime answers; "": there is no other
}

// Access is how a provider is reached. The zero value is none.
type Access struct{ BaseURL, Key string }

// An Other is a provider with a name of its own. Its models are named NAME/MODEL.
type Other struct {
	Name    string
	Kind    string // "anthropic" or "openai": the API that it has
	Setting string // that has its key, for the operator
	Access
	Models []string // that can be chosen without being named in Config
}

// Options are what models need in addition to their configuration.
type Options struct {
	Search quote.Search // of local/quote; nil: it finds nothing
	Clock  core.Clock
	Log    *slog.Logger
	Health *health.Board // records how the models answer; nil: nothing is
}

// Models are the configured language models. They do not change; methods may
// be called concurrently.
type Models struct {
	First llm.Model // Config.Model with its fallbacks
	Guest llm.Model // nil: First answers guests
	Title llm.Model // nil: no model names conversations
	Names []string  // of all, without repeats, in the order of Config
	Sitting

	elsewhere string
	fallbacks []string
	listed    map[string]bool // models of Config.Others that nothing else in Config names
	byName    map[string]llm.Model
	providers []provider
	closers   []func()
}

// New returns the models that c names. It asks no provider.
func New(c Config, o Options) (*Models, error) {
	m := &Models{elsewhere: c.Elsewhere, fallbacks: c.Fallbacks, listed: map[string]bool{}, byName: map[string]llm.Model{}}
	if err := m.seats(c, o); err != nil {
		m.Close()
		return nil, err
	}
	var chain []llm.Model
	for _, name := range append([]string{c.First()}, c.Fallbacks...) {
		model, err := m.named(c, name, o)
		if err != nil {
			m.Close()
			return nil, err
		}
		chain = append(chain, model)
	}
	m.First = chain[0]
	if len(chain) > 1 {
		m.First = llm.Fallback(chain...)
	}
	for _, more := range []struct {
		name string
		to   *llm.Model
	}{{c.Guest, &m.Guest}, {c.Title, &m.Title}} {
		if more.name == "" {
			continue
		}
		model, err := m.named(c, more.name, o)
		if err != nil {
			m.Close()
			return nil, err
		}
		*more.to = model
	}
	if err := m.list(c, o); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// named returns the model of a setting, which anyone may then choose.
func (m *Models) named(c Config, name string, o Options) (llm.Model, error) {
	if core.CouncilLevel(name) != "" {
		return m.seated(name)
	}
	delete(m.listed, name)
	return m.add(c, name, o)
}

// list adds the models of named providers that can be chosen.
func (m *Models) list(c Config, o Options) error {
	for _, p := range c.Others {
		for _, name := range p.Models {
			if name = p.Name + "/" + name; m.byName[name] != nil {
				continue
			}
			if _, err := m.add(c, name, o); err != nil {
				return err
			}
			m.listed[name] = true
		}
	}
	return nil
}

// First returns Model, or the name that takes its place when it is empty: a
// provider alone, which chooses from its own list, the first model of Others, or
// local/quote.
func (c Config) First() string {
	preset := quote.Name
	switch {
	case c.Anthropic != Access{}:
		preset = "anthropic/"
	case c.OpenAI != Access{}:
		preset = "openai/"
	default:
		for _, p := range c.Others {
			if len(p.Models) > 0 {
				preset = p.Name + "/" + p.Models[0]
				break
			}
		}
	}
	return cmp.Or(c.Model, preset)
}

// Local reports whether a model answers without a provider.
func Local(name string) bool { return strings.HasPrefix(name, "local/") }

// offers reports whether a provider's model answers, is a fallback or can be chosen: one with
// access, or a named one that lists models or has one in a setting other than Council.
func (c Config) offers() bool {
	if c.Anthropic != (Access{}) || c.OpenAI != (Access{}) {
		return true
	}
	names := append([]string{c.Model, c.Guest, c.Title}, c.Fallbacks...)
	return slices.ContainsFunc(c.Others, func(p Other) bool {
		return len(p.Models) > 0 || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, p.Name+"/") })
	})
}

// A provider is a model at a server that lists what it offers.
type provider interface {
	llm.Model
	Models(ctx context.Context) ([]string, error)
	Close()
}

// add returns a new client for a model and registers it by the model's name.
func (m *Models) add(c Config, name string, o Options) (llm.Model, error) {
	model, err := m.build(c, name, o)
	if err != nil {
		return nil, err
	}
	p, asks := model.(provider)
	model = o.Health.Watch(model)
	if key := model.About().Name; m.byName[key] == nil {
		if asks {
			m.providers = append(m.providers, p)
		}
		m.byName[key], m.Names = model, append(m.Names, key)
	}
	return model, nil
}

func (m *Models) build(c Config, name string, o Options) (llm.Model, error) {
	if Local(name) {
		q, err := quote.New(name, o.Search, o.Clock)
		if err == nil && c.offers() {
			q = q.WithoutHint()
		}
		return q, err
	}
	var p provider
	var err error
	switch kind, rest, _ := strings.Cut(name, "/"); kind {
	case "anthropic":
		p, err = anthropic.New(anthropic.Options{Model: rest, BaseURL: c.Anthropic.BaseURL, Key: c.Anthropic.Key, Window: c.Windows[name], Clock: o.Clock, Log: o.Log})
	case "openai":
		p, err = openai.New(openai.Options{Model: rest, BaseURL: c.OpenAI.BaseURL, Key: c.OpenAI.Key, Window: c.Windows[name], Clock: o.Clock, Log: o.Log})
	default:
		if p, err = c.other(kind, rest, o); p == nil && err == nil {
			return nil, core.Errorf(core.Invalid, "GATEHOUSE_MODEL: %q is not anthropic/NAME, openai/NAME, local/quote or a model of a provider in GATEHOUSE_PROVIDERS_FILE", name)
		}
	}
	if err != nil {
		return nil, err
	}
	m.closers = append(m.closers, p.Close)
	return p, nil
}

// other returns a client of a named provider; nil if there is none of that name.
func (c Config) other(name, model string, o Options) (provider, error) {
	i := slices.IndexFunc(c.Others, func(p Other) bool { return p.Name == name })
	if i < 0 || model == "" {
		return nil, nil
	}
	p, window := c.Others[i], c.Windows[name+"/"+model]
	if p.Kind == "anthropic" {
		return anthropic.New(anthropic.Options{Name: name, Model: model, BaseURL: p.BaseURL, Key: p.Key, Setting: p.Setting, Window: window, Clock: o.Clock, Log: o.Log})
	}
	return openai.New(openai.Options{Name: name, Model: model, BaseURL: p.BaseURL, Key: p.Key, Setting: p.Setting, Window: window, Clock: o.Clock, Log: o.Log})
}

// Find returns the model of that name; "" is First. Where Guest is set, guests
// get that one and no other: Denied; nor do they get a model that only the list of a
// named provider has. Invalid: the name is not configured.
func (m *Models) Find(name string, guest bool) (llm.Model, error) {
	if guest && m.Guest != nil {
		if own := m.Guest.About().Name; name != "" && name != own {
			return nil, core.Errorf(core.Denied, "guests are answered by %s here", own)
		}
		return m.Guest, nil
	}
	if name == "" && guest {
		return m.forGuests(), nil
	}
	if name == "" {
		return m.First, nil
	}
	if model := m.byName[name]; model != nil {
		if guest && m.listed[name] {
			return nil, core.Errorf(core.Denied, "guests are answered by %s here", m.forGuests().About().Name)
		}
		return model, nil
	}
	return nil, core.Errorf(core.Invalid, "model %q is not configured here; there is %s", name, strings.Join(m.Names, ", "))
}

// Open returns the names of the models that may answer, in order.
func (m *Models) Open(guest bool) (names []string) {
	for _, name := range m.Names {
		if _, err := m.Find(name, guest); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// Named returns the model of that name, not its fallbacks; nil if there is none.
func (m *Models) Named(name string) llm.Model { return m.byName[name] }

// Default returns the name of the model that answers where none is chosen.
func (m *Models) Default() string { return m.First.About().Name }

// OnlyForGuests reports whether a model answers guests and no one else.
func (m *Models) OnlyForGuests(name string) bool {
	return m.Guest != nil && m.Guest.About().Name == name && name != m.Default() && !slices.Contains(m.fallbacks, name)
}

// Listed reports whether a model is there only to be chosen.
func (m *Models) Listed(name string) bool { return m.listed[name] }

// Missing returns why turns that name this model are answered by First
// instead; "" if they are not.
func (m *Models) Missing(name string) string {
	if m.elsewhere != "" && strings.HasPrefix(name, m.elsewhere) {
		return ""
	}
	if _, err := m.Find(name, false); err != nil {
		return core.TextOf(err)
	}
	return ""
}

// Check has each provider list its models, which costs nothing, and returns
// the name of the model that answers. After an error it returns the first model of
// the provider that did not.
func (m *Models) Check(ctx context.Context) (string, error) {
	asked := map[string]bool{} // providers by name; bounded by the settings
	for _, p := range m.providers {
		name := p.About().Name
		if provider, _, _ := strings.Cut(name, "/"); !asked[provider] {
			asked[provider] = true
			if _, err := p.Models(ctx); err != nil {
				return name, err
			}
		}
	}
	return m.Default(), nil
}

// Close closes connections that no call uses.
func (m *Models) Close() {
	for _, f := range m.closers {
		f()
	}
}
