package main

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// shelfView is core/session as the API reads one.
type shelfView struct {
	*session.Store
	a *app
}

func (v shelfView) Detail(ctx context.Context, id string) (session.Detail, error) {
	return v.Store.Detail(ctx, v.a.db, id)
}

// editorView is core/session as the API changes it.
type editorView struct{ a *app }

func (v editorView) Update(ctx context.Context, id string, c session.Change, by core.Actor) (d session.Detail, err error) {
	err = v.a.db.Tx(ctx, func(tx *store.Tx) (err error) {
		d, err = v.a.sessions.Update(ctx, tx, id, c, by)
		return err
	})
	return d, err
}

// Delete also takes back what was granted in the session. The transaction is
// where it looks for runs: none can be claimed at the same time.
func (v editorView) Delete(ctx context.Context, id string, by core.Actor) error {
	return v.a.db.Tx(ctx, func(tx *store.Tx) error {
		for _, run := range v.a.bus.Active() {
			if run.Session == id {
				return core.Errorf(core.Conflict, "a run of this session is going on; stop it first")
			}
		}
		if err := v.a.guard.ForgetSession(ctx, tx, id); err != nil {
			return err
		}
		return v.a.sessions.Delete(ctx, tx, id, by)
	})
}
