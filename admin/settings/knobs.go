package settings

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// A knob is one setting that can be changed here.
type knob struct {
	Setting
	Group   string
	Short   string // without prefix, which is its field
	Label   string
	Hint    string
	Empty   string        // the effective value where it is empty
	Choices []page.Choice // empty: a text field
	Models  bool          // models are offered
}

// A knobGroup is the settings under one heading.
type knobGroup struct {
	Name  string
	Hint  string
	Knobs []knob
}

const (
	knobsAnswer = "Who answers"
	knobsPeople = "Messages and people"
	knobsBudget = "Budgets"
)

var knobHints = map[string]string{
	knobsAnswer: "A model is written as anthropic/NAME, openai/NAME or local/quote; a new one must answer a test message before it is saved. Keys and addresses of providers are read only at start: a new provider needs them in the environment, and a restart.",
	knobsBudget: "In tokens (200k, 1.5m) or dollars ($2), for a day in UTC; empty is no bound.",
}

// knobList returns all settings that can be changed here, in their order.
func (p *valuePages) knobList() []knob {
	levels := []page.Choice{{Value: "sandboxed", Label: "sandboxed"}, {Value: "vault", Label: "vault"}}
	return []knob{
		{Group: knobsAnswer, Short: "MODEL", Label: "Model", Empty: "the first provider with a key", Models: true},
		{Group: knobsAnswer, Short: "MODEL_FALLBACKS", Label: "When it cannot answer", Empty: "nobody else", Hint: "In this order, separated by commas."},
		{Group: knobsAnswer, Short: "GUEST_MODEL", Label: "Model for sandboxed people", Empty: "the same", Models: true},
		{Group: knobsAnswer, Short: "TITLE_MODEL", Label: "Model for titles", Empty: "none: the first words", Models: true},
		{Group: knobsAnswer, Short: "DEFAULT_AGENT", Label: "Agent", Choices: p.agentChoices()},
		{Group: knobsPeople, Short: "DM_TRUST", Label: "Level preset for direct messages", Choices: levels},
		{Group: knobsPeople, Short: "GROUP_TRUST", Label: "Level preset for groups", Choices: levels},
		{Group: knobsPeople, Short: "GUEST_READ", Label: "Files that sandboxed people are quoted", Empty: "none", Hint: "Globs such as Public/**, separated by commas."},
		{Group: knobsPeople, Short: "RATE_LIMIT", Label: "Messages of one person to a bot", Empty: "off", Hint: "As 10/60s, or off."},
		{Group: knobsPeople, Short: "BUSY_MODE", Label: "Messages while an answer is made", Choices: []page.Choice{{Value: "collect", Label: "collect them"}, {Value: "queue", Label: "queue them"}, {Value: "interrupt", Label: "interrupt the answer"}}},
		{Group: knobsBudget, Short: "BUDGET_USER_DAY", Label: "Of each person", Empty: "no bound"},
		{Group: knobsBudget, Short: "BUDGET_BOT_DAY", Label: "Of each bot", Empty: "no bound"},
		{Group: knobsBudget, Short: "BUDGET_DAY", Label: "Of all together", Empty: "no bound"},
	}
}

// agentChoices returns the agents that can be the default.
func (p *valuePages) agentChoices() []page.Choice {
	list := []page.Choice{{Value: "", Label: "the one of every vault"}}
	if p.o.Agents == nil {
		return list
	}
	for i, a := range page.Head(p.o.Agents.List(), maxListed) {
		if i == 0 {
			list[0].Label = a.Name // it is the first choice
			continue
		}
		list = append(list, page.Choice{Value: a.Name, Label: a.Name})
	}
	return list
}

// knobs returns those of all that can be changed here.
func (p *valuePages) knobs(all []Setting) (out []knob) {
	if p.o.Changes == nil {
		return nil
	}
	for _, k := range p.knobList() {
		i := slices.IndexFunc(all, func(s Setting) bool { return strings.TrimPrefix(s.Name, "GATEHOUSE_") == k.Short })
		if i < 0 {
			continue
		}
		k.Setting = all[i]
		if len(k.Choices) > 0 && !slices.ContainsFunc(k.Choices, func(c page.Choice) bool { return c.Value == k.Value }) {
			k.Choices = append(k.Choices, page.Choice{Value: k.Value, Label: k.Value}) // so that saving the rest leaves it
		}
		out = append(out, k)
	}
	return out
}

// Set returns the configured value as a label.
func (k knob) Set() string {
	for _, c := range k.Choices {
		if c.Value == k.Configured {
			return c.Label
		}
	}
	if k.Configured == "" {
		return k.Empty
	}
	return k.Configured
}

func inGroups(list []knob) (groups []knobGroup) {
	for _, k := range list {
		if n := len(groups); n == 0 || groups[n-1].Name != k.Group {
			groups = append(groups, knobGroup{Name: k.Group, Hint: knobHints[k.Group]})
		}
		g := &groups[len(groups)-1]
		g.Knobs = append(g.Knobs, k)
	}
	return groups
}

func (p *valuePages) changeSettings(r *http.Request, by core.Actor) (page.Flash, string, error) {
	back := settingsPath + "#knobs-h"
	knobs := p.knobs(p.o.Settings.Settings())
	values := map[string]string{} // bounded by the knobs
	for _, k := range knobs {
		if r.PostFormValue("reset") == k.Short && k.Source == "panel" {
			return page.Good(k.Label + " is as configured again: " + k.Set() + "."), back, p.change(r, map[string]string{k.Short: k.Configured}, by)
		}
		if _, sent := r.PostForm[k.Short]; !sent {
			continue
		}
		if value := strings.TrimSpace(r.PostFormValue(k.Short)); value != k.Value {
			values[k.Short] = value
		}
	}
	if len(values) == 0 {
		return page.Note("Nothing was changed: all values were already set."), back, nil
	}
	return page.Good(page.Count(len(values), "setting is", "settings are") + " changed and hold from now on, also after a restart."), back, p.change(r, values, by)
}

// change may call models.
func (p *valuePages) change(r *http.Request, values map[string]string, by core.Actor) error {
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	return p.o.Changes.Change(ctx, values, by)
}
