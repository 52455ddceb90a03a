package main

import (
	"fmt"
	"log/slog"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/claudecli"
)

// noModel says why turns that name this model are answered by the configured
// one instead; "" where they are not.
func (m *models) noModel(cfg *configs.Config, name string) string {
	if cfg.ClaudeCLI != "" && strings.HasPrefix(name, claudecli.Prefix) {
		return ""
	}
	if _, err := m.find(name, false); err != nil {
		return core.TextOf(err)
	}
	return ""
}

// configuredModels are the models of cfg, for a look at their names; nothing is
// asked. Nil where they cannot be made, which others tell.
func configuredModels(cfg *configs.Config) *models {
	m, err := newModels(cfg, nil, core.System{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil
	}
	return m
}

// modelFaults are the agents and workspaces that name a model which is not
// there, with what happens instead.
func modelFaults(cfg *configs.Config, agents *agent.Agents) (faults []string) {
	m := configuredModels(cfg)
	if m == nil {
		return nil
	}
	defer m.Close()
	return faultsOfModels(cfg, m, agents)
}

func faultsOfModels(cfg *configs.Config, m *models, agents *agent.Agents) (faults []string) {
	note := func(what, name, model string) {
		if why := m.noModel(cfg, model); model != "" && why != "" {
			faults = append(faults, fmt.Sprintf("%s %s: %s; %s answers instead", what, name, why, m.first.About().Name))
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
