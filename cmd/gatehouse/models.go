package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/quote"
)

// models are the configured language models by name.
type models struct {
	first  llm.Model // MODEL with its fallbacks
	guest  llm.Model // GUEST_MODEL; nil: first
	title  llm.Model // TITLE_MODEL; nil: none
	byName map[string]llm.Model
	names  []string // for metrics and messages, in order
	close  []func()
}

// models are those that answer now; a turn keeps those that it began with.
func (a *app) models() *models { return a.spoken.Load() }

// newModels builds MODEL, MODEL_FALLBACKS, GUEST_MODEL and TITLE_MODEL. Keys and addresses come from cfg
// alone.
func newModels(cfg *configs.Config, search quote.Search, clock core.Clock, log *slog.Logger) (*models, error) {
	m := &models{byName: map[string]llm.Model{}}
	wanted := append([]string{firstNamed(cfg)}, cfg.ModelFallbacks...)
	var chain []llm.Model
	for _, name := range wanted {
		model, err := m.build(cfg, name, search, clock, log)
		if err != nil {
			return nil, err
		}
		chain = append(chain, model)
		if key := model.About().Name; m.byName[key] == nil {
			m.byName[key] = model
			m.names = append(m.names, key)
		}
	}
	m.first = chain[0]
	if len(chain) > 1 {
		m.first = llm.Fallback(chain...)
	}
	for _, more := range []struct {
		name string
		to   *llm.Model
	}{{cfg.GuestModel, &m.guest}, {cfg.TitleModel, &m.title}} {
		if more.name == "" {
			continue
		}
		model, err := m.build(cfg, more.name, search, clock, log)
		if err != nil {
			return nil, err
		}
		*more.to = model
		if key := model.About().Name; m.byName[key] == nil {
			m.byName[key], m.names = model, append(m.names, key)
		}
	}
	return m, nil
}

// firstNamed is MODEL, or what stands for it where it is empty.
func firstNamed(cfg *configs.Config) string { return cmp.Or(cfg.Model, preset(cfg)) }

// preset is the model where MODEL is empty; a provider without name chooses
// one from its list.
func preset(cfg *configs.Config) string {
	switch {
	case cfg.AnthropicAPIKey.IsSet() || cfg.AnthropicBaseURL != "":
		return "anthropic/"
	case cfg.HasProvider():
		return "openai/"
	}
	return quote.Name
}

// A provider is a model at a server that can be asked what it offers.
type provider interface {
	llm.Model
	Models(ctx context.Context) ([]string, error)
	Close()
}

func (m *models) build(cfg *configs.Config, name string, search quote.Search, clock core.Clock, log *slog.Logger) (llm.Model, error) {
	if strings.HasPrefix(name, "local/") {
		q, err := quote.New(name, search, clock)
		if err == nil && cfg.HasProvider() {
			q = q.WithoutHint()
		}
		return q, err
	}
	var p provider
	var err error
	switch kind, rest, _ := strings.Cut(name, "/"); kind {
	case "anthropic":
		p, err = anthropic.New(anthropic.Options{Model: rest, BaseURL: cfg.AnthropicBaseURL, Key: cfg.AnthropicAPIKey.Reveal(), Clock: clock, Log: log})
	case "openai":
		p, err = openai.New(openai.Options{Model: rest, BaseURL: cfg.OpenaiBaseURL, Key: cfg.OpenaiAPIKey.Reveal(), Clock: clock, Log: log})
	default:
		return nil, core.Errorf(core.Invalid, "GATEHOUSE_MODEL: %q is not anthropic/NAME, openai/NAME or local/quote", name)
	}
	if err != nil {
		return nil, err
	}
	m.close = append(m.close, p.Close)
	return p, nil
}

// find is the model of that name; "" is the configured one. With GUEST_MODEL
// guests are answered by that one and no other.
func (m *models) find(name string, guest bool) (llm.Model, error) {
	if guest && m.guest != nil {
		if own := m.guest.About().Name; name != "" && name != own {
			return nil, core.Errorf(core.Denied, "guests are answered by %s here", own)
		}
		return m.guest, nil
	}
	if name == "" {
		return m.first, nil
	}
	if model := m.byName[name]; model != nil {
		return model, nil
	}
	names := slices.Clone(m.names)
	return nil, core.Errorf(core.Invalid, "model %q is not configured here; there is %s", name, strings.Join(names, ", "))
}

// open are the names of the models that may answer, in order.
func (m *models) open(guest bool) (names []string) {
	for _, name := range m.names {
		if _, err := m.find(name, guest); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (m *models) Close() {
	for _, f := range m.close {
		f()
	}
}

// check asks each configured provider one cheap question.
func (m *models) check(ctx context.Context) (string, error) {
	for _, name := range m.names {
		if p, ok := m.byName[name].(provider); ok {
			if _, err := p.Models(ctx); err != nil {
				return "", err
			}
		}
	}
	return m.first.About().Name, nil
}
