// Package daily is the chat command /agents daily: it lists the daily agents and runs them.
package daily

import (
	"context"
	"strings"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	agents "gatehouse/core/schedule/daily"
	"gatehouse/core/texts"
)

// run is the argument of a button that runs an agent.
const run = "daily run "

// Agents are the daily agents (schedule.Scheduler).
type Agents interface {
	List(ctx context.Context) ([]agents.Line, []agents.Fault, error)
	// Start runs one for today; one that has run is agents.Skipped.
	Start(ctx context.Context, name, date string, force bool, by core.Actor) (agents.Run, error)
}

// Commands handles /agents daily.
type Commands struct {
	agents Agents
	asks   *ask.Buttons
}

// maxWhy limits what the list shows of why a run failed, in characters.
const maxWhy = 150

// New returns Commands over these parts.
func New(a Agents, asks *ask.Buttons) *Commands { return &Commands{a, asks} }

// Commands returns /agents.
func (c *Commands) Commands() []command.Command {
	return []command.Command{{Name: "agents", About: texts.Text("about_agents"), How: texts.Text("agents_daily_how"), Args: texts.Text("args_agents"), Shows: true, Managers: true, Private: true, Run: c.Run}}
}

// Run lists the daily agents with buttons that run them, or runs the one of a button.
func (c *Commands) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if name, ok := strings.CutPrefix(r.Args(), run); ok {
		started, err := c.agents.Start(ctx, strings.TrimSpace(name), "", false, r.By())
		if err != nil {
			return command.Outcome{}, err
		}
		return command.Respond("daily_started", texts.With{"Name": texts.Escape(started.Agent), "Date": started.Date, "Again": started.Result == agents.Skipped})
	}
	if word := r.Args(); word != "" && !strings.EqualFold(word, "daily") {
		return arguments.Wrong(word, texts.Text("agents_daily_how"))
	}
	lines, faults, err := c.agents.List(ctx)
	if err != nil {
		return command.Outcome{}, err
	}
	if len(lines)+len(faults) == 0 {
		return command.Respond("daily_none")
	}
	var b strings.Builder
	o := ask.Offer{Command: "agents"}
	for i, l := range lines {
		last, why := "", ""
		if l.Last != nil {
			last, why = l.Last.Result, core.CutRunes(strings.Join(strings.Fields(l.Last.Error), " "), maxWhy)
			if last == "" {
				last = "running"
			}
		}
		b.WriteString(texts.Text("daily_line", texts.With{"N": i + 1, "Name": texts.Escape(l.DisplayName), "On": l.Enabled, "Last": texts.Escape(last), "Why": texts.Escape(why),
			"When": l.Next.Format("Monday, 2 January, 15:04 MST")}) + "\n")
		o.Add(texts.Text("button_daily_run", texts.With{"N": i + 1}), run+l.Name)
	}
	for _, f := range faults {
		b.WriteString(texts.Text("daily_fault", texts.With{"What": texts.Escape(f.String())}) + "\n")
	}
	return c.asks.Offer(r, strings.TrimSpace(b.String()), o)
}
