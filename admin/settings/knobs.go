package settings

import (
	"context"
	"net/http"
	"net/url"
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
	Fault   string        // why the value that was typed is not saved
	Typed   string        // it
}

// A knobGroup is the settings under one heading.
type knobGroup struct {
	Name  string
	Hint  string
	Knobs []knob
}

const (
	knobsAnswer = "Who answers"
	knobsPeople = "People without access, and guests"
	knobsWrite  = "Messages"
	knobsBudget = "Budgets"
)

var knobHints = map[string]string{
	knobsAnswer: "A model is written as anthropic/NAME, openai/NAME, PROVIDER/NAME or local/quote; a new one must answer a test message before it is saved. Keys and addresses in the environment are read only at start; PROVIDERS_FILE is read again when it changes.",
	knobsBudget: "In tokens (200k, 1.5m) or dollars ($2), for a day in UTC; empty is no bound.",
}

// knobList returns all settings that can be changed here, in their order.
func (p *valuePages) knobList() []knob {
	levels := presets()
	return []knob{
		{Group: knobsAnswer, Short: "MODEL", Label: "Model", Empty: "the first provider with a key", Models: true},
		{Group: knobsAnswer, Short: "MODEL_FALLBACKS", Label: "When it cannot answer", Empty: "nobody else", Hint: "In this order, separated by commas."},
		{Group: knobsAnswer, Short: "GUEST_MODEL", Label: "Model for sandboxed people", Empty: "the same", Models: true},
		{Group: knobsAnswer, Short: "TITLE_MODEL", Label: "Model for titles", Empty: "none: the first words", Models: true},
		{Group: knobsAnswer, Short: "DEFAULT_AGENT", Label: "Agent", Choices: p.agentChoices()},
		{Group: knobsPeople, Short: "DM_TRUST", Label: "Level preset for direct messages", Choices: levels},
		{Group: knobsPeople, Short: "GROUP_TRUST", Label: "Level preset for groups", Choices: levels},
		{Group: knobsPeople, Short: "GUEST_READ", Label: "Files that sandboxed people are quoted", Empty: "none", Hint: "Globs such as Public/**, separated by commas."},
		{Group: knobsWrite, Short: "RATE_LIMIT", Label: "Messages of one person to a bot", Empty: "off", Hint: "As 10/60s, or off."},
		{Group: knobsWrite, Short: "BUSY_MODE", Label: "Messages while an answer is made", Choices: []page.Choice{{Value: "collect", Label: "collect them"}, {Value: "queue", Label: "queue them"}, {Value: "interrupt", Label: "interrupt the answer"}}},
		{Group: knobsWrite, Short: "ACTIVITY", Label: "Log of your conversations in the vault", Choices: []page.Choice{{Value: "on", Label: "on"}, {Value: "off", Label: "off"}}},
		{Group: knobsBudget, Short: "BUDGET_USER_DAY", Label: "Budget of each person", Empty: "no bound"},
		{Group: knobsBudget, Short: "BUDGET_BOT_DAY", Label: "Budget of each bot", Empty: "no bound"},
		{Group: knobsBudget, Short: "BUDGET_DAY", Label: "Budget of all together", Empty: "no bound"},
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
		i := slices.IndexFunc(all, func(s Setting) bool { return short(s.Name) == k.Short })
		if i < 0 {
			continue
		}
		k.Setting = all[i]
		k.Typed = k.Value
		if len(k.Choices) > 0 && !slices.ContainsFunc(k.Choices, func(c page.Choice) bool { return c.Value == k.Value }) {
			k.Choices = append(k.Choices, page.Choice{Value: k.Value, Label: k.Value}) // so that saving the rest leaves it
		}
		out = append(out, k)
	}
	return out
}

// typed returns k as it was sent in a form that was refused.
func (k knob) typed(b sectionBody) knob {
	if b.Typed.Has(k.Short) {
		k.Typed = b.Typed.Get(k.Short)
	}
	if b.Field == k.Short {
		k.Fault = b.Fault
	}
	return k
}

// Set returns the configured value as a label.
func (k knob) Set() string { return k.label(k.Configured) }

// label returns how the page shows a value.
func (k knob) label(value string) string {
	for _, c := range k.Choices {
		if c.Value == value {
			return c.Label
		}
	}
	if value == "" {
		return k.Empty
	}
	return value
}

// sent returns the value that a form sets; false if it leaves the present one, also where
// another user has set that since the form was shown. It refuses to replace such a one.
func (k knob) sent(form url.Values) (value string, changed bool, err error) {
	value = strings.TrimSpace(form.Get(k.Short))
	shown := k.Value
	if form.Has("was." + k.Short) {
		shown = strings.TrimSpace(form.Get("was." + k.Short))
	}
	switch {
	case !form.Has(k.Short), value == k.Value, value == shown:
		return "", false, nil
	case shown != k.Value:
		return "", false, core.Errorf(core.Invalid, "%s: it was changed meanwhile, to %s; save again to replace that.", k.Short, k.label(k.Value))
	}
	return value, true, nil
}

// inGroups adds k to its group, which is the last of groups or a new one.
func inGroups(groups []knobGroup, k knob) []knobGroup {
	if n := len(groups); n == 0 || groups[n-1].Name != k.Group {
		groups = append(groups, knobGroup{Name: k.Group, Hint: knobHints[k.Group]})
	}
	g := &groups[len(groups)-1]
	g.Knobs = append(g.Knobs, k)
	return groups
}

// saveSection saves the values of one section. If one is refused, nothing is saved and
// the page shows what was typed with the reason.
func (p *valuePages) saveSection(key string) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		who, _ := page.Principal(r)
		said, err := p.changeSettings(r, key, who.Actor())
		if err == nil {
			p.frame.SetFlash(w, r, said)
			return p.frame.Away(w, r, pathOf(key))
		}
		if _, ok := page.Refusal(w, err); !ok {
			return err
		}
		field, _, _ := strings.Cut(core.TextOf(err), ":")
		b := sectionBody{Typed: r.PostForm, Fault: page.Sentence(core.TextOf(err))}
		if slices.ContainsFunc(p.knobList(), func(k knob) bool { return k.Short == field && sectionOf(field).Key == key }) {
			b.Field = field
		}
		return p.showSection(w, r, http.StatusUnprocessableEntity, key, b)
	}
}

func (p *valuePages) changeSettings(r *http.Request, key string, by core.Actor) (page.Flash, error) {
	values := map[string]string{} // bounded by the knobs
	for _, k := range p.knobs(p.o.Settings.Settings()) {
		if sectionOf(k.Short).Key != key {
			continue
		}
		if r.PostFormValue("reset") == k.Short && k.Source == fromPanel {
			return page.Good(k.Label + " is as configured again: " + k.Set() + "."), p.change(r, map[string]string{k.Short: k.Configured}, by)
		}
		value, changed, err := k.sent(r.PostForm)
		if err != nil {
			return page.Flash{}, err
		}
		if changed {
			values[k.Short] = value
		}
	}
	if len(values) == 0 {
		return page.Note("Nothing was changed: all values were already set."), nil
	}
	return page.Good(page.Count(len(values), "setting is", "settings are") + " changed, and stay so after a restart."), p.change(r, values, by)
}

// change may call models.
func (p *valuePages) change(r *http.Request, values map[string]string, by core.Actor) error {
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	return p.o.Changes.Change(ctx, values, by)
}
