package main

import (
	"strings"

	"gatehouse/core"
	"gatehouse/web/auth"
	"gatehouse/web/openai"
)

// modelsView are the agents and the configured models, as programs that speak
// OpenAI's API name them. An agent with a model's name is reached as that model
// only. Guests with a model of their own are shown that one, and agents only who
// may choose them.
type modelsView struct{ a *app }

func (v modelsView) Models(p auth.Principal) []openai.Model {
	var out []openai.Model
	m := v.a.models.Now()
	names := m.Names
	if guest := m.Guest; guest != nil && p.User != core.Operator && p.Trust <= core.Sandboxed {
		names = []string{guest.About().Name}
	}
	taken := map[string]bool{} // one per name
	for _, name := range names {
		owner, _, _ := strings.Cut(name, "/")
		out = append(out, openai.Model{ID: name, Owner: owner, Model: name})
		taken[name] = true
	}
	if !p.Governs() {
		return out
	}
	for _, x := range v.a.agents.List() {
		if !taken[x.Name] {
			out = append(out, openai.Model{ID: x.Name, Owner: "agent", Agent: x.Name})
		}
	}
	return out
}
