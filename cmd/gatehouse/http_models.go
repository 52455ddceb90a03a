package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/admin"
	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// modelsPage is the configured models as the panel shows them.
type modelsPage struct{ a *app }

func (v modelsPage) Models() (list []admin.ModelRow) {
	m := v.a.models()
	first := m.first.About().Name
	for _, name := range m.names {
		about := m.byName[name].About()
		row := admin.ModelRow{Name: name, Use: "stands in"}
		switch {
		case name == first:
			row.Use = "answers"
		case m.guest != nil && m.guest.About().Name == name && !slices.Contains(v.a.now().ModelFallbacks, name):
			row.Use = "answers guests"
		}
		in, known := v.a.cost(name, llm.Usage{Input: 1_000_000})
		out, also := v.a.cost(name, llm.Usage{Output: 1_000_000})
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

// Test has the model say a word, and counts what that took like any other call.
func (v modelsPage) Test(ctx context.Context, name string) (time.Duration, error) {
	m := v.a.models().byName[name]
	if m == nil {
		return 0, core.Errorf(core.NotFound, "there is no such model")
	}
	return v.a.tryModel(ctx, name, m)
}

// tryModel has m, which goes by that name, say a word; it counts like any other call.
func (a *app) tryModel(ctx context.Context, name string, m llm.Model) (time.Duration, error) {
	request := &llm.Request{Messages: []llm.Message{{Role: "user", Blocks: []llm.Block{{Type: "text", Text: "Say: ok"}}}}, MaxTokens: 1, Sender: llm.Sender{User: core.Operator, Trust: core.Sandboxed}}
	begun, first := a.clock.Now(), time.Duration(-1)
	var used *llm.Usage
	for d, err := range m.Reply(ctx, request) {
		var f *llm.Fault
		switch {
		case errors.As(err, &f):
			return 0, core.Errorf(core.Busy, "%s does not answer: %s", name, f.Text)
		case err != nil:
			return 0, err
		}
		if first < 0 {
			first = a.clock.Now().Sub(begun)
		}
		if d.Usage != nil {
			used = d.Usage
		}
	}
	if used != nil {
		row := usage.Row{User: core.Operator, Bot: "panel", Model: name, Input: int64(used.Input), Output: int64(used.Output), CacheRead: int64(used.CacheRead), CacheWrite: int64(used.CacheWrite)}
		if cost, known := a.cost(name, *used); known {
			row.MicroUSD = &cost
		}
		if err := a.db.Tx(ctx, func(tx *store.Tx) error { return a.usage.Record(ctx, tx, row) }); err != nil {
			return 0, err
		}
	}
	return max(0, first), nil
}

func (v modelsPage) Chart(ctx context.Context, step time.Duration, n int) (usage.Chart, error) {
	return v.a.rolls.Read(ctx, step, n)
}
