package chat

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Sessions changes conversations.
type Sessions interface {
	Update(ctx context.Context, tx *store.Tx, id string, c session.Change, by core.Actor) (session.Detail, error)
}

// activity handles /activity: whether a conversation is in the log of the owner's vault.
type activity struct {
	db       *store.DB
	bound    *bound
	sessions Sessions
	logging  func() bool // in all
}

// run shows whether the chat's conversation is logged, or changes that.
func (a *activity) run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if r.Role != core.RoleOwner {
		return respond("activity_not_yours")
	}
	switch word := strings.ToLower(r.Args()); word {
	case "":
		s, any, err := a.bound.sessions.Current(ctx, a.db, r.In.Address)
		return command.Outcome{Text: texts.Text("activity_state", texts.With{"On": !any || !s.ActivityOff(), "All": a.logging()})}, err
	case "on", "off":
		return command.Outcome{Text: texts.Text("activity_set", texts.With{"On": word == "on", "All": a.logging()}), Write: func(ctx context.Context, tx *store.Tx) error {
			s, err := a.bound.resolve(ctx, tx, r)
			if err == nil {
				_, err = a.sessions.Update(ctx, tx, s.ID, session.ActivityChange(word == "on"), r.By())
			}
			return err
		}}, nil
	}
	return respond("activity_how")
}
