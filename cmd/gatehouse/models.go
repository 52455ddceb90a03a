package main

import (
	"context"
	"errors"
	"time"

	"gatehouse/admin/operations"
	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

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
