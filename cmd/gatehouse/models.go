package main

import (
	"context"
	"time"

	"gatehouse/admin/operations"
	"gatehouse/core"
	"gatehouse/core/claudecli"
	"gatehouse/core/permission"
	"gatehouse/core/usage"
	"gatehouse/web/auth"
)

// mayAnswer returns why a model of this name cannot answer a turn of p's at trust. A turn may
// have less trust than that: then its run decides.
func (a *app) mayAnswer(p auth.Principal, trust core.Trust, name string) error {
	owner := p.User == core.Operator || p.Session // as a turn is prepared
	if a.claude != nil && a.claude.Answers(name) {
		if why := claudecli.Refusal(permission.Profile{Owner: owner, Trust: trust}); why != "" {
			return core.Errorf(core.Denied, "%s", why)
		}
		return nil
	}
	_, err := a.models.Find(name, !owner && trust <= core.Sandboxed)
	return err
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
		case m.Listed(name):
			row.Use = "can be chosen"
		}
		in, known := v.a.spending.cost(name, core.Tokens{Input: 1_000_000})
		out, also := v.a.spending.cost(name, core.Tokens{Output: 1_000_000})
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

// Trouble returns why PROVIDERS_FILE is not in use as it is.
func (v modelsPage) Trouble() string {
	if err := v.a.cfg.Providers().Fault(); err != nil {
		return err.Error()
	}
	return ""
}

// Test asks the model for one token and counts the call like any other.
func (v modelsPage) Test(ctx context.Context, name string) (time.Duration, error) {
	m := v.a.models.Now().Named(name)
	if m == nil {
		return 0, core.Errorf(core.NotFound, "there is no such model")
	}
	return v.a.spending.try(ctx, name, m)
}

func (v modelsPage) Chart(ctx context.Context, step time.Duration, n int, zone *time.Location) (usage.Chart, error) {
	return v.a.rolls.Read(ctx, step, n, zone)
}

// failing returns the configured models that fail now.
func (v modelsPage) failing() (list []operations.Failing) {
	for _, f := range v.a.health.Failing(v.a.models.Now().Names...) {
		list = append(list, operations.Failing{Model: f.Model, Code: f.Code, Setting: f.Setting, Since: f.Since, Messages: f.Runs})
	}
	return list
}
