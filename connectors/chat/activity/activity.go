// Package activity is the chat command /activity: whether a conversation is in the log of the
// owner's vault.
package activity

import (
	"context"
	"strings"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Chats finds the conversation of a chat.
type Chats interface {
	// Current returns the session of the chat, and whether there is one.
	Current(ctx context.Context, q store.Queryer, at core.Address) (session.Session, bool, error)
}

// Sessions changes conversations.
type Sessions interface {
	Update(ctx context.Context, tx *store.Tx, id string, c session.Change, by core.Actor) (session.Detail, error)
}

// A Command handles /activity.
type Command struct {
	DB       *store.DB
	Chats    Chats
	Sessions Sessions
	Logging  func() bool // the owner's conversations are logged, unless that is off for one
	// Resolve returns the conversation of the chat. It begins one if there is none.
	Resolve func(ctx context.Context, tx *store.Tx, r command.Request) (session.Session, error)
}

// Run shows whether the chat's conversation is logged, or changes that.
func (c *Command) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if r.Role != core.RoleOwner {
		return command.Respond("activity_not_yours")
	}
	switch word := strings.ToLower(r.Args()); word {
	case "":
		s, any, err := c.Chats.Current(ctx, c.DB, r.In.Address)
		return command.Outcome{Text: texts.Text("activity_state", texts.With{"On": !any || !s.ActivityOff(), "All": c.Logging()})}, err
	case "on", "off":
		return command.Outcome{Text: texts.Text("activity_set", texts.With{"On": word == "on", "All": c.Logging()}), Write: func(ctx context.Context, tx *store.Tx) error {
			s, err := c.Resolve(ctx, tx, r)
			if err == nil {
				_, err = c.Sessions.Update(ctx, tx, s.ID, session.ActivityChange(word == "on"), r.By())
			}
			return err
		}}, nil
	}
	return arguments.Wrong(r.Args(), texts.Text("activity_how"))
}
