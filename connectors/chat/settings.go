package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
)

// modelsFor are the names of the models that may answer the caller.
func (c *Chat) modelsFor(ctx context.Context, call command.Call) (names []string, err error) {
	_, err = c.owner(ctx, call)
	if err != nil && core.KindOf(err) != core.Denied {
		return nil, err
	}
	return c.o.Models(err != nil && call.Trust <= core.Sandboxed), nil
}

// model says or chooses which model answers in this chat, among those that are
// configured and may answer the caller.
func (c *Chat) chooseModel(ctx context.Context, call command.Call) (command.Outcome, error) {
	names, err := c.modelsFor(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	word := strings.TrimSpace(call.In.Text)
	if word == "" {
		chosen, err := c.chosenModel(ctx, call)
		if err != nil {
			return command.Outcome{}, err
		}
		return c.listModels(ctx, call, names, chosen)
	}
	if err := c.manages(ctx, call); err != nil {
		return command.Outcome{}, err
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
		return command.Outcome{}, err
	}
	return command.Outcome{Text: done, Write: write}, nil
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

func (c *Chat) listModels(ctx context.Context, call command.Call, names []string, chosen string) (command.Outcome, error) {
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
		return command.Outcome{Text: b.String()}, nil
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

func (c *Chat) busy(ctx context.Context, call command.Call) (command.Outcome, error) {
	set, err := c.o.Sessions.Settings(ctx, c.o.DB, call.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	word := strings.ToLower(strings.TrimSpace(call.In.Text))
	for _, m := range busyModes() {
		if m.name != word {
			continue
		}
		if err := c.manages(ctx, call); err != nil {
			return command.Outcome{}, err
		}
		set.BusyMode = word
		ref := c.ref(0, call)
		return command.Outcome{Text: texts.Text("busy_chosen", texts.With{"About": m.about}), Write: func(ctx context.Context, tx *store.Tx) error {
			return c.o.Sessions.SetSettings(ctx, tx, ref, set)
		}}, nil
	}
	now := set.BusyMode
	if now == "" {
		now = c.o.BusyMode()
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
		return command.Outcome{Text: b.String()}, nil
	}
	return c.offer(ctx, call, b.String(), o)
}

// usageOf says what the person's answers took, and what is left of budgets.
func (c *Chat) usageOf(ctx context.Context, call command.Call) (command.Outcome, error) {
	user, err := c.user(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	now := c.o.Clock.Now().UTC()
	var b strings.Builder
	for _, p := range []struct {
		head  string
		since time.Time
	}{{texts.Text("usage_today"), now.Truncate(24 * time.Hour)}, {texts.Text("usage_month"), now.AddDate(0, 0, -30)}} {
		totals, err := c.o.Usage.Own(ctx, c.o.DB, user, p.since)
		if err != nil {
			return command.Outcome{}, err
		}
		b.WriteString(p.head + "\n\n" + tally(totals) + "\n")
	}
	left, err := c.o.Usage.Left(ctx, c.o.DB, user, call.In.Bot, now)
	if err != nil {
		return command.Outcome{}, err
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
	return command.Outcome{Text: b.String()}, nil
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
