package main

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/web/auth"
)

// keysView is the API keys, of users that there are.
type keysView struct {
	*auth.Keys
	a *app
}

func (v keysView) Create(ctx context.Context, n auth.NewKey, by core.Actor) (string, auth.KeyRow, error) {
	ok, err := v.a.pairing.People.HasUser(ctx, v.a.db, n.User)
	if err == nil && !ok {
		err = core.Errorf(core.Invalid, "there is no user %d: 'gatehouse pairing list --status approved' and the panel's page People show who there is", n.User)
	}
	if err != nil {
		return "", auth.KeyRow{}, err
	}
	return v.Keys.Create(ctx, n, by)
}

// logView is the audit log and the ledger of calls, read outside a transaction.
type logView struct{ a *app }

func (v logView) AuditLog(ctx context.Context, f store.AuditFilter) ([]store.AuditEvent, string, error) {
	return store.AuditLog(ctx, v.a.db, f)
}

func (v logView) Did(ctx context.Context, by core.Actor, action, subject string) error {
	return v.a.auditBot(ctx, by, action, subject)
}

func (v logView) Report(ctx context.Context, q usage.ReportQuery) ([]usage.Figure, error) {
	return v.a.usage.Report(ctx, v.a.db, q)
}
