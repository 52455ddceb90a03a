package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
)

// modelsFor are the names of the models that may answer the caller.
func (c *chat) modelsFor(ctx context.Context, call dispatch.Call) (names []string, err error) {
	_, err = c.owner(ctx, call)
	if err != nil && core.KindOf(err) != core.Denied {
		return nil, err
	}
	guest := err != nil && call.Trust <= core.Sandboxed
	for _, name := range c.models().names {
		if _, err := c.models().find(name, guest); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// model says or chooses which model answers in this chat, among those that are
// configured and may answer the caller.
func (c *chat) chooseModel(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	names, err := c.modelsFor(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	word := strings.TrimSpace(call.In.Text)
	if word == "" {
		chosen, err := c.chosenModel(ctx, call)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		return c.listModels(ctx, call, names, chosen)
	}
	if err := c.manages(ctx, call); err != nil {
		return dispatch.Outcome{}, err
	}
	model, done := "", texts.Text("model_default")
	switch found := matching(names, word); {
	case strings.EqualFold(word, "default"):
	case len(found) != 1:
		return said("model_unknown", texts.With{"Model": plain(word)})
	default:
		model = found[0]
		done = texts.Text("model_chosen", texts.With{"Model": found[0]})
	}
	write, err := c.setModel(ctx, call, model)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return dispatch.Outcome{Text: done, Write: write}, nil
}

// matching are the names that word stands for: the whole name, or the only one
// that holds it.
func matching(names []string, word string) (found []string) {
	for _, name := range names {
		if strings.EqualFold(name, word) {
			return []string{name}
		}
		if strings.Contains(strings.ToLower(name), strings.ToLower(word)) {
			found = append(found, name)
		}
	}
	return found
}

func (c *chat) listModels(ctx context.Context, call dispatch.Call, names []string, chosen string) (dispatch.Outcome, error) {
	var b strings.Builder
	b.WriteString(texts.Text("models") + "\n\n")
	o := offer{Command: "model"}
	for _, name := range names {
		if name != chosen {
			o.add(name, name)
		}
		b.WriteString(texts.Text("models_line", texts.With{"Model": name, "Chosen": name == chosen}) + "\n")
	}
	if chosen != "" {
		o.add(texts.Text("model_configured"), "default")
	}
	b.WriteString("\n" + texts.Text("models_end"))
	if c.manages(ctx, call) != nil || len(names) < 2 && chosen == "" {
		return dispatch.Outcome{Text: b.String()}, nil
	}
	return c.offer(ctx, call, b.String(), o)
}

type busyMode struct{ name, about string }

// busyModes says what becomes of messages that come while an answer is made.
func busyModes() []busyMode {
	return []busyMode{
		{"collect", texts.Text("busy_collect")},
		{"queue", texts.Text("busy_queue")},
		{"interrupt", texts.Text("busy_interrupt")},
	}
}

func (c *chat) busy(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	set, err := c.sessions.Settings(ctx, c.db, call.In.Address)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	word := strings.ToLower(strings.TrimSpace(call.In.Text))
	for _, m := range busyModes() {
		if m.name != word {
			continue
		}
		if err := c.manages(ctx, call); err != nil {
			return dispatch.Outcome{}, err
		}
		set.BusyMode = word
		ref := c.ref(0, call)
		return dispatch.Outcome{Text: texts.Text("busy_chosen", texts.With{"About": m.about}), Write: func(ctx context.Context, tx *store.Tx) error {
			return c.sessions.SetSettings(ctx, tx, ref, set)
		}}, nil
	}
	now := set.BusyMode
	if now == "" {
		now = c.busyMode()
	}
	var b strings.Builder
	b.WriteString(texts.Text("busy") + "\n\n")
	o := offer{Command: "busy"}
	for _, m := range busyModes() {
		if m.name != now {
			o.add(m.name, m.name)
		}
		b.WriteString(texts.Text("busy_line", texts.With{"Name": m.name, "About": m.about, "Now": m.name == now}) + "\n")
	}
	b.WriteString("\n" + texts.Text("busy_end"))
	if c.manages(ctx, call) != nil {
		return dispatch.Outcome{Text: b.String()}, nil
	}
	return c.offer(ctx, call, b.String(), o)
}

// usageOf says what the person's answers took, and what is left of budgets.
func (c *chat) usageOf(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	user, err := c.user(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	now := c.clock.Now().UTC()
	var b strings.Builder
	for _, p := range []struct {
		head  string
		since time.Time
	}{{texts.Text("usage_today"), now.Truncate(24 * time.Hour)}, {texts.Text("usage_month"), now.AddDate(0, 0, -30)}} {
		totals, err := c.usage.Own(ctx, c.db, user, p.since)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		b.WriteString(p.head + "\n\n" + tally(totals) + "\n")
	}
	left, err := c.usage.Left(ctx, c.db, user, call.In.Bot, now)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	_, owner := c.owner(ctx, call)
	for _, l := range left {
		if l.Whose != usage.OfUser && owner != nil {
			continue // what others use is not a guest's to see
		}
		left := ""
		if l.Left != (usage.Budget{}) {
			left = l.Left.String()
		}
		b.WriteString(texts.Text("usage_left", texts.With{"Whose": l.Whose, "Month": l.Month, "Budget": l.Budget, "Left": left}) + "\n\n")
	}
	b.WriteString(texts.Text("usage_end"))
	return dispatch.Outcome{Text: b.String()}, nil
}

// tally is one line per model.
func tally(totals []usage.Total) string {
	if len(totals) == 0 {
		return texts.Text("usage_nothing") + "\n"
	}
	var b strings.Builder
	for _, t := range totals {
		b.WriteString(texts.Text("usage_line", texts.With{"Model": t.Model, "Calls": t.Calls, "Tokens": t.Input + t.Output + t.CacheRead + t.CacheWrite,
			"Cost": fmt.Sprintf("$%.4f", float64(t.MicroUSD)/1e6), "Unpriced": t.Unpriced}) + "\n")
	}
	return b.String()
}
