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

func (v keysView) Create(ctx context.Context, n auth.NewKey, by core.Actor) (string, auth.KeyRow, error) {
	ok, err := v.users.HasUser(ctx, v.db, n.User)
	if err == nil && !ok {
		err = core.Errorf(core.Invalid, "there is no user %d: 'gatehouse pairing list --status approved' and the panel's page People show who there is", n.User)
	}
	if err != nil {
		return "", auth.KeyRow{}, err
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
	return v.db.Tx(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, by, action, subject, nil) })
}

func (v logView) Report(ctx context.Context, q usage.ReportQuery) ([]usage.Figure, error) {
	return v.ledger.Report(ctx, v.db, q)
}

// Called records a call of another agent.
func (v logView) Called(ctx context.Context, by core.Actor, what, key string) error {
	return v.db.Tx(ctx, func(tx *store.Tx) error {
		return store.Audit(ctx, tx, by, "mcp.call", what, map[string]any{"key": key})
	})
}
