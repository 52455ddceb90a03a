package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
)

// renderings is how often an answer is rendered.
const renderings = 1000

// renderers returns the platforms as they render; they connect to nothing.
func renderers() (map[string]connectors.Renderer, error) {
	tg, err := telegram.New(telegram.Options{Name: "bot", Token: "1:abc", Cursors: &connectorstest.Store{}})
	if err != nil {
		return nil, err
	}
	dc, err := discord.New(discord.Options{Name: "bot", Token: "MTAwMDAwMDAwMDAwMDAwMDAwMQ.render.this-is-no-token-0123456789abcdef", Cursors: &connectorstest.Store{}})
	if err != nil {
		return nil, err
	}
	return map[string]connectors.Renderer{"telegram": tg, "discord": dc}, nil
}

// render measures in this process how long an answer of 10 kB takes to become a
// platform's messages: previews render it again and again while it grows.
func (b *bench) render(context.Context) error {
	list, err := renderers()
	if err != nil {
		return err
	}
	d := &renderData{Took: map[string]percentiles{}, Allocations: map[string]float64{}}
	source := connectorstest.Answer()
	for name, r := range list {
		for range renderings / 10 {
			r.Render(source)
		}
		took := make([]time.Duration, 0, renderings)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range renderings {
			began := time.Now()
			r.Render(source)
			took = append(took, time.Since(began))
		}
		runtime.ReadMemStats(&after)
		d.Took[name], d.Allocations[name] = summary(took), float64(after.Mallocs-before.Mallocs)/renderings
	}
	b.data.Render = d
	return nil
}

// renderGoals judges it.
func renderGoals(d *renderData) (out []line) {
	for _, name := range []string{"telegram", "discord"} {
		what := fmt.Sprintf("an answer of 10 kB rendered for %s, ", name)
		out = append(out, atMost(what+"p50", d.Took[name].P50, 1, "ms", ""), atMost(what+"allocations", d.Allocations[name], 200, "", ""))
	}
	return out
}
