// Package models makes the configured models from the settings and reports which
// names have no model.
package models

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/providers"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/claudecli"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
)

// answerTime bounds the question whether a provider answers.
const answerTime = 15 * time.Second

// Config returns the models that cfg names. Keys and addresses come from cfg
// only.
func Config(cfg *configs.Config) registry.Config {
	c := registry.Config{
		Model: cfg.Model, Fallbacks: cfg.ModelFallbacks, Guest: cfg.GuestModel, Title: cfg.TitleModel, Windows: cfg.ModelWindows,
		Anthropic: registry.Access{BaseURL: cfg.AnthropicBaseURL, Key: cfg.AnthropicAPIKey.Reveal()},
		OpenAI:    registry.Access{BaseURL: cfg.OpenaiBaseURL, Key: cfg.OpenaiAPIKey.Reveal()},
	}
	if cfg.ClaudeCLI != "" {
		c.Elsewhere = claudecli.Prefix
	}
	named(cfg.Providers().Now(), &c)
	c.Council, c.Judge = cfg.CouncilMembers()
	return c
}

// named adds the providers of PROVIDERS_FILE. A window of the settings goes before
// one of the file.
func named(list *providers.List, c *registry.Config) {
	windows := map[string]int{}
	for _, p := range list.Providers {
		other := registry.Other{Name: p.Name, Kind: p.Kind, Setting: "the key_file of " + p.Name + " in GATEHOUSE_PROVIDERS_FILE",
			Access: registry.Access{BaseURL: p.BaseURL, Key: p.Key.Reveal()}}
		for _, m := range p.Models {
			other.Models = append(other.Models, m.Name)
			if m.Window > 0 {
				windows[p.Name+"/"+m.Name] = m.Window
			}
		}
		c.Others = append(c.Others, other)
	}
	maps.Copy(windows, c.Windows)
	c.Windows = windows
}

// New returns the models of cfg. It makes no request of a provider.
func New(cfg *configs.Config, o registry.Options) (*registry.Models, error) {
	return registry.New(Config(cfg), o)
}

// Faults returns the agents and workspaces that name a model which is not
// configured; none if the models of cfg cannot be made, which others report.
func Faults(cfg *configs.Config, agents *agent.Agents) []string {
	m, err := New(cfg, registry.Options{Clock: core.System{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil
	}
	defer m.Close()
	return Missing(m, agents)
}

// Missing returns a line for each agent and workspace that names a model
// which is not configured, with what happens instead.
func Missing(m *registry.Models, agents *agent.Agents) (faults []string) {
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

// OneToken asks the first model of cfg for one token and returns the model's name.
func OneToken(ctx context.Context, cfg *configs.Config) (name string, err error) {
	m, err := New(cfg, registry.Options{Clock: core.System{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var f *llm.Fault
	switch _, _, err = registry.Try(ctx, m.First, core.System{}); {
	case errors.As(err, &f):
		return "", core.Errorf(core.Busy, "The model does not answer: %s", f.Text)
	case err != nil:
		return "", core.Errorf(core.Busy, "The model cannot be reached")
	}
	return m.Default(), nil
}
