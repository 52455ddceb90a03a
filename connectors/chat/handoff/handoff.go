// Package handoff is the chat command /handoff: what another window or tool needs to go on
// with the conversation.
package handoff

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Sessions finds the conversation of a chat.
type Sessions interface {
	// Current returns the session of the chat, and whether there is one.
	Current(ctx context.Context, q store.Queryer, at core.Address) (session.Session, bool, error)
}

// A Command handles /handoff.
type Command struct {
	DB       *store.DB
	Sessions Sessions
	// Markdown returns what another tool needs to go on with a session, for the user who
	// reads it, or 0 where others do too; core.NotFound before there is anything.
	Markdown func(ctx context.Context, s session.Session, reader int64) (string, error)
}

// Commands returns /handoff.
func (c *Command) Commands() []command.Command {
	return []command.Command{{Name: "handoff", About: texts.Text("about_handoff"), Where: command.DirectOnly, Elsewhere: texts.Text("sessions_in_group"), Private: true, Run: c.Run}}
}

// Run shows the newest note on the conversation and, in a direct chat, what is remembered of the
// user.
func (c *Command) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	s, ok, err := c.Sessions.Current(ctx, c.DB, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	if !ok || s.User != r.User {
		return command.Respond("handoff_none")
	}
	reader := r.User
	if r.In.Group() {
		reader = 0
	}
	text, err := c.Markdown(ctx, s, reader)
	if core.KindOf(err) == core.NotFound {
		return command.Respond("handoff_none")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: text}, nil
}
