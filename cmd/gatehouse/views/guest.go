package views

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// Guest reports whether the turns of a conversation are a guest's: at trust sandboxed at most,
// by its agent and workspace too, and of a user who does not manage the gateway. An admin of
// the panel is one who does, but not in a chat, where their account has no role.
func Guest(ctx context.Context, q store.Queryer, s session.Session, sessions *session.Store, users *people.Store, agents *agent.Agents) (bool, error) {
	role, admin, err := users.Role(ctx, q, s.User)
	least := core.Least(s.TrustLevel, agents.Role(s.AgentType, s.Workspace).Trust)
	if err != nil || s.User == core.Operator || role.Manages() || least > core.Sandboxed {
		return false, err
	}
	if !admin {
		return true, nil
	}
	at, bound, err := sessions.Bound(ctx, q, s.ID)
	return err != nil || bound && at.Bot != core.APIBot, err
}
