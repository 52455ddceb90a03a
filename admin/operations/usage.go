package operations

import (
	"context"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/usage"
)

// maxModels is how many models the overview names.
const maxModels = 4

// answer returns what models have used since midnight UTC, when budgets are
// reset.
func (p *modelPages) answer(ctx context.Context) page.Answer {
	a := page.Answer{Key: "usage", Question: "What did today cost?", Tone: "idle"}
	if p.o.Models != nil {
		a.Path, a.Link = modelsPath, "Models"
	}
	since := p.frame.Clock.Now().UTC().Truncate(24 * time.Hour)
	rows := page.Load(ctx, p.frame, "What models have used", func(ctx context.Context) ([]usage.Total, error) { return p.o.Usage(ctx, since) })
	if rows.Broken != "" {
		a.Broken, a.Tone, a.Short = rows.Broken, "warn", "usage can’t be read"
		return a
	}
	var all usage.Total
	for _, t := range rows.Value {
		all.Calls += t.Calls
		all.Input += t.Input + t.CacheRead + t.CacheWrite
		all.Output += t.Output
		all.MicroUSD += t.MicroUSD
		all.Unpriced += t.Unpriced
	}
	if all.Calls == 0 {
		a.Answer = "Nothing: no model was called since midnight UTC."
		return a
	}
	a.Answer = cost(all)
	a.Detail = []page.Detail{{Text: page.Grouped(all.Input+all.Output) + " tokens in " + page.Count(int(all.Calls), "call", "calls") + " since midnight UTC"}}
	if all.Unpriced > 0 {
		a.Detail = append(a.Detail, page.Detail{Text: page.Count(int(all.Unpriced), "call has", "calls have") + " no known price"})
	}
	for _, t := range rows.Value[:min(len(rows.Value), maxModels)] {
		a.Detail = append(a.Detail, page.Detail{Who: t.Model, Text: ": " + page.Grouped(t.Input+t.CacheRead+t.CacheWrite) + " in, " + page.Grouped(t.Output) + " out" + page.Price(t.MicroUSD, t.Unpriced)})
	}
	if more := len(rows.Value) - maxModels; more > 0 {
		a.Detail = append(a.Detail, page.Detail{Text: "and " + page.Count(more, "other model", "other models")})
	}
	return a
}

// cost returns what t cost, as far as prices are known.
func cost(t usage.Total) string {
	switch {
	case t.MicroUSD == 0 && t.Unpriced > 0:
		return "No price is known."
	case t.MicroUSD == 0:
		return "Nothing."
	}
	return core.Dollars(t.MicroUSD)
}
