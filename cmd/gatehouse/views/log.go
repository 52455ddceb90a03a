package views

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/pairing/people"
	"gatehouse/web/auth"
)

// keysView is the API keys, of users that there are.
type keysView struct {
	*auth.Keys
	db    *store.DB
	users *people.Store
}

// Create refuses a key that would have more trust than its user has anywhere now.
func (v keysView) Create(ctx context.Context, n auth.NewKey, by core.Actor) (string, auth.KeyRow, error) {
	most, err := v.users.Most(ctx, n.User)
	switch {
	case core.KindOf(err) == core.NotFound:
		return "", auth.KeyRow{}, core.Errorf(core.Invalid, "%w", err)
	case err != nil:
		return "", auth.KeyRow{}, err
	case most == core.Stranger:
		return "", auth.KeyRow{}, core.Errorf(core.Denied, "user %d has no access of their own to any bot now (what a policy or a group allows is not theirs), and no key has more than its user: give them access first, on the panel's page People", n.User)
	case n.Trust > most:
		return "", auth.KeyRow{}, core.Errorf(core.Denied, "user %d has at most trust %s, and no key has more than its user: ask for %s, or first change their access on the panel's page People", n.User, most, most)
	}
	return v.Keys.Create(ctx, n, by)
}

// logView is the audit log and the ledger of calls, read outside a transaction.
type logView struct {
	db     *store.DB
	ledger *usage.Ledger
}

func (v logView) AuditLog(ctx context.Context, f store.AuditFilter) ([]store.AuditEvent, string, error) {
	return store.AuditLog(ctx, v.db, f)
}

func (v logView) Did(ctx context.Context, by core.Actor, action, subject string) error {
	return v.db.Audit(ctx, by, action, subject, nil)
}

func (v logView) Report(ctx context.Context, q usage.ReportQuery) ([]usage.Figure, error) {
	return v.ledger.Report(ctx, v.db, q)
}

// Called records a call of another agent.
func (v logView) Called(ctx context.Context, by core.Actor, what, key string) error {
	return v.db.Audit(ctx, by, "mcp.call", what, map[string]any{"key": key})
}
