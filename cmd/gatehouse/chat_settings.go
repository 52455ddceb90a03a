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
	model, done := "", "Answers here come from the configured model again."
	switch found := matching(names, word); {
	case strings.EqualFold(word, "default"):
	case len(found) != 1:
		return said("There is no model %s for you here. `/model` lists those there are.", plain(word))
	default:
		model = found[0]
		done = fmt.Sprintf("Answers here come from `%s` from now on.", found[0])
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
	b.WriteString("Models:\n\n")
	o := offer{Command: "model"}
	for _, name := range names {
		mark := ""
		if name == chosen {
			mark = ", chosen here"
		} else {
			o.add(name, name)
		}
		fmt.Fprintf(&b, "- `%s`%s\n", name, mark)
	}
	if chosen != "" {
		o.add("the configured one", "default")
	}
	b.WriteString("\n`/model NAME` chooses one for this chat, `/model default` the configured one.")
	if c.manages(ctx, call) != nil || len(names) < 2 && chosen == "" {
		return said("%s", b.String())
	}
	return c.offer(ctx, call, b.String(), o)
}

// busyModes says what becomes of messages that come while an answer is made.
var busyModes = []struct{ name, about string }{
	{"collect", "what you write meanwhile is answered together, next"},
	{"queue", "each message gets its own answer, in order"},
	{"interrupt", "a new message stops the answer and is answered instead"},
}

func (c *chat) busy(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	set, err := c.sessions.Settings(ctx, c.db, call.In.Address)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	word := strings.ToLower(strings.TrimSpace(call.In.Text))
	for _, m := range busyModes {
		if m.name != word {
			continue
		}
		if err := c.manages(ctx, call); err != nil {
			return dispatch.Outcome{}, err
		}
		set.BusyMode = word
		ref := c.ref(0, call)
		return dispatch.Outcome{Text: "While I am busy: " + m.about + ".", Write: func(ctx context.Context, tx *store.Tx) error {
			return c.sessions.SetSettings(ctx, tx, ref, set)
		}}, nil
	}
	now := set.BusyMode
	if now == "" {
		now = c.busyMode()
	}
	var b strings.Builder
	b.WriteString("While I am busy:\n\n")
	o := offer{Command: "busy"}
	for _, m := range busyModes {
		mark := ""
		if m.name == now {
			mark = " (now)"
		} else {
			o.add(m.name, m.name)
		}
		fmt.Fprintf(&b, "- %s: %s%s\n", m.name, m.about, mark)
	}
	b.WriteString("\n`/busy NAME` chooses one for this chat.")
	if c.manages(ctx, call) != nil {
		return said("%s", b.String())
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
		name  string
		since time.Time
	}{{"Today", now.Truncate(24 * time.Hour)}, {"The last 30 days", now.AddDate(0, 0, -30)}} {
		totals, err := c.usage.Own(ctx, c.db, user, p.since)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		fmt.Fprintf(&b, "%s:\n\n%s\n", p.name, tally(totals))
	}
	left, err := c.usage.Left(ctx, c.db, user, call.In.Bot, now)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	_, owner := c.owner(ctx, call)
	for _, l := range left {
		if l.Whose == "Your" || owner == nil { // what others use is not a guest's to see
			fmt.Fprintf(&b, "%s budget for today is %s; %s is left.\n\n", l.Whose, l.Budget, leftOf(l))
		}
	}
	b.WriteString("Days begin at midnight UTC.")
	return said("%s", b.String())
}

func leftOf(l usage.Left) string {
	if l.Left == (usage.Budget{}) {
		return "nothing"
	}
	return l.Left.String()
}

// tally is one line per model.
func tally(totals []usage.Total) string {
	if len(totals) == 0 {
		return "- nothing\n"
	}
	var b strings.Builder
	for _, t := range totals {
		fmt.Fprintf(&b, "- `%s`: %d calls, %d tokens", t.Model, t.Calls, t.Input+t.Output+t.CacheRead+t.CacheWrite)
		switch {
		case t.Unpriced == 0:
			fmt.Fprintf(&b, ", $%.4f", float64(t.MicroUSD)/1e6)
		case t.Unpriced < t.Calls:
			fmt.Fprintf(&b, ", $%.4f and %d calls without a known price", float64(t.MicroUSD)/1e6, t.Unpriced)
		}
		b.WriteString("\n")
	}
	return b.String()
}
