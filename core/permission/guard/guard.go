// Package guard decides tool calls by the policy of package permission and by
// the grants that users gave, and asks the owner where the policy requires it.
// It owns the table tool_grants.
package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

// A Show shows asks to users in chat and replaces them by their outcome, both
// inside the transaction that opens or settles them. The buttons of a
// permission carry Ask.Data of OptionOnce, OptionGrant(i) and OptionDeny and
// are brought to Press. For a question (Ask.Kind) req is empty and the payload
// holds {"questions": …}.
type Show interface {
	Open(ctx context.Context, tx *store.Tx, a ask.Ask, req core.PermissionRequest, p permission.Profile) error
	Close(ctx context.Context, tx *store.Tx, a ask.Ask, outcome string) error
}

// Options are what a Guard is on; DB and Asks must be given.
type Options struct {
	DB        *store.DB
	Asks      *ask.Store
	Vault     *vault.Vault // its .parachuteignore counts, and links are resolved in it; nil: neither
	Isolation func() bool  // whether there is a sandbox for what needs one; nil: there is none
	Clock     core.Clock   // nil: the system's
	Log       *slog.Logger // nil: none
	Metrics   *Metrics     // nil: counted nowhere
	Show      Show         // nil: only the panel and the API show asks
	// Own returns the absolute paths of the gateway's own files and directories that a
	// shell at full trust could read. A command that names one, or anything below
	// one, is asked each time. nil: there are none.
	Own func() []string
	// Chat returns the chat in which a run is to be answered by now, which may have got
	// another id since the run began; "" where that is not known. nil: the profile's.
	Chat func(ctx context.Context, q store.Queryer, run string) (string, error)
}

// A Guard decides what tool calls may do. It owns the table tool_grants and is
// safe for concurrent use.
type Guard struct{ o Options }

// New makes a Guard.
func New(o Options) *Guard {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{o: o}
}

func (g *Guard) own() []string {
	if g.o.Own == nil {
		return nil
	}
	return g.o.Own()
}

// Bounds returns p.Bounds with the lines of the vault's .parachuteignore as they
// are now, for tool.Turn.
func (g *Guard) Bounds(p permission.Profile) (mayRead, mayWrite func(name string) bool) {
	return p.Bounds(permission.IgnoreLines(g.o.Vault))
}

// Decide returns what becomes of a call, without asking anyone. It changes
// nothing. q is the DB or a transaction.
func (g *Guard) Decide(ctx context.Context, q store.Queryer, p permission.Profile, t tool.Tool, input json.RawMessage, a tool.Access) (permission.Decision, error) {
	c := permission.Call{Profile: p, Tool: t, Input: input, Access: a, Vault: g.o.Vault, Isolation: g.o.Isolation != nil && g.o.Isolation(), Own: g.own()}
	if p.Session != "" && p.User > 0 {
		since := ""
		if !p.Since.IsZero() {
			since = core.Stamp(p.Since)
		}
		err := q.Select(ctx, &c.Grants, `SELECT id, session_id, user_id, trust, kind, pattern FROM tool_grants
			WHERE session_id = $1 AND user_id = $2 AND trust = $3 AND created_at >= $4`, p.Session, p.User, p.Trust, since)
		if err != nil {
			return permission.Decision{}, fmt.Errorf("tool grants: %w", err)
		}
	}
	return c.Decide(ctx)
}
