// Package accuracy is the chat command /accuracy: how many models of the council answer.
package accuracy

import (
	"context"
	"slices"
	"strings"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/texts"
)

// Models are the models that may answer.
type Models interface{ Names(guest bool) []string }

// Guests returns what reports why guests cannot use the commands of a council: none answers
// them.
func Guests(models Models) func() error {
	return func() error {
		if slices.ContainsFunc(models.Names(true), func(name string) bool { return core.CouncilLevel(name) != "" }) {
			return nil
		}
		return texts.Error(core.Denied, "accuracy_guests")
	}
}

// New returns the command. choose is /model.
func New(models Models, choose func(context.Context, command.Request) (command.Outcome, error), asks *ask.Buttons) func(context.Context, command.Request) (command.Outcome, error) {
	return func(ctx context.Context, r command.Request) (command.Outcome, error) {
		names := models.Names(r.Guest())
		var open []string
		for _, level := range core.AccuracyLevels() {
			if slices.Contains(names, core.CouncilModel(level)) {
				open = append(open, level)
			}
		}
		switch word := strings.ToLower(r.Args()); {
		case word == "off":
			return choose(ctx, with(r, "default"))
		case slices.Contains(open, word):
			out, err := choose(ctx, with(r, core.CouncilModel(word)))
			if err == nil && out.Write != nil {
				out.Text = texts.Text("accuracy_chosen", texts.With{"Level": word})
			}
			return out, err
		case len(open) == 0:
			return command.Respond("accuracy_none")
		case word != "":
			how := texts.Text("accuracy_how", texts.With{"Levels": "`" + strings.Join(open, "`, `") + "`", "Example": open[0]})
			if slices.Contains(core.AccuracyLevels(), word) {
				return command.Outcome{Text: texts.Text("accuracy_not_here", texts.With{"Level": word}) + " " + how}, nil
			}
			return arguments.Wrong(r.Args(), how)
		}
		o := ask.Offer{Command: "accuracy"}
		for _, level := range open {
			o.Add(level, level)
		}
		o.Add(texts.Text("accuracy_off"), "off")
		return asks.Offer(r, texts.Text("accuracy_levels"), o)
	}
}

// with returns a request with other arguments.
func with(r command.Request, args string) command.Request {
	in := *r.In
	in.Text = args
	r.In = &in
	return r
}
