package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gatehouse/admin/operations"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/claudecli"
	"gatehouse/core/llm"
	"gatehouse/core/llm/quote"
	"gatehouse/core/llm/registry"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// modelConfig returns cfg's models. Keys and addresses come from cfg only.
func modelConfig(cfg *configs.Config) registry.Config {
	c := registry.Config{
		Model: cfg.Model, Fallbacks: cfg.ModelFallbacks, Guest: cfg.GuestModel, Title: cfg.TitleModel,
		Anthropic: registry.Access{BaseURL: cfg.AnthropicBaseURL, Key: cfg.AnthropicAPIKey.Reveal()},
		OpenAI:    registry.Access{BaseURL: cfg.OpenaiBaseURL, Key: cfg.OpenaiAPIKey.Reveal()},
	}
	if cfg.ClaudeCLI != "" {
		c.Elsewhere = claudecli.Prefix
	}
	return c
}

// newModels returns the models of cfg; it asks no provider.
func newModels(cfg *configs.Config, search quote.Search, clock core.Clock, log *slog.Logger) (*registry.Models, error) {
	return registry.New(modelConfig(cfg), registry.Options{Search: search, Clock: clock, Log: log})
}

// modelFaults returns the agents and workspaces that name a model which is not
// configured; none if the models of cfg cannot be made, which others report.
func modelFaults(cfg *configs.Config, agents *agent.Agents) []string {
	m, err := newModels(cfg, nil, core.System{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil
	}
	defer m.Close()
	return missingModels(m, agents)
}

// missingModels returns a line for each agent and workspace that names a model
// which is not configured, with what happens instead.
func missingModels(m *registry.Models, agents *agent.Agents) (faults []string) {
	note := func(what, name, model string) {
		if why := m.Missing(model); model != "" && why != "" {
			faults = append(faults, fmt.Sprintf("%s %s: %s; %s answers instead", what, name, why, m.Default()))
		}
	}
	for _, a := range agents.List() {
		note("agent", a.Name, a.Model)
	}
	for _, w := range agents.Workspaces() {
		note("workspace", w.Slug, w.Model)
	}
	return faults
}

// modelsPage shows the configured models in the panel.
type modelsPage struct{ a *app }

func (v modelsPage) Models() (list []operations.ModelRow) {
	m := v.a.models.Now()
	for _, name := range m.Names {
		about := m.Named(name).About()
		row := operations.ModelRow{Name: name, Use: "stands in"}
		switch {
		case name == m.Default():
			row.Use = "answers"
		case m.OnlyForGuests(name):
			row.Use = "answers guests"
		}
		in, known := v.a.cost(name, core.Tokens{Input: 1_000_000})
		out, also := v.a.cost(name, core.Tokens{Output: 1_000_000})
		row.Priced, row.Input, row.Output = known && also, in, out
		for _, c := range []struct {
			can  bool
			word string
		}{{about.Tools, "tools"}, {about.Images, "images"}, {about.Documents, "documents"}, {about.Thinking, "thinking"}, {about.Search, "web search"}} {
			if c.can {
				row.Can = append(row.Can, c.word)
			}
		}
		list = append(list, row)
	}
	return list
}

// Test asks the model for one token and counts the call like any other.
func (v modelsPage) Test(ctx context.Context, name string) (time.Duration, error) {
	m := v.a.models.Now().Named(name)
	if m == nil {
		return 0, core.Errorf(core.NotFound, "there is no such model")
	}
	return v.a.tryModel(ctx, name, m)
}

func (v modelsPage) Chart(ctx context.Context, step time.Duration, n int) (usage.Chart, error) {
	return v.a.rolls.Read(ctx, step, n)
}

// tryModel asks m for one token and records the call's usage under name.
func (a *app) tryModel(ctx context.Context, name string, m llm.Model) (time.Duration, error) {
	first, used, err := registry.Try(ctx, m, a.clock)
	var f *llm.Fault
	if errors.As(err, &f) {
		return 0, core.Errorf(core.Busy, "%s does not answer: %s", name, f.Text)
	}
	if err != nil || used == nil {
		return first, err
	}
	row := usage.Row{User: core.Operator, Bot: "panel", Model: name, Input: int64(used.Input), Output: int64(used.Output), CacheRead: int64(used.CacheRead), CacheWrite: int64(used.CacheWrite)}
	if cost, known := a.cost(name, *used); known {
		row.MicroUSD = &cost
	}
	return first, a.db.Tx(ctx, func(tx *store.Tx) error { return a.usage.Record(ctx, tx, row) })
}
