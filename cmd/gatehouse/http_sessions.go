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

// Page notes that the session was opened, where its end is read.
func (v shelfView) Page(ctx context.Context, s session.Session, q session.PageQuery) (session.Page, error) {
	if q.Before == "" && q.After == "" {
		v.a.sessions.Touch(s.ID)
	}
	return v.Store.Page(ctx, s, q)
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

// Delete also takes back what was granted in the session.
func (v editorView) Delete(ctx context.Context, id string, by core.Actor) error {
	return v.a.db.Tx(ctx, func(tx *store.Tx) error {
		if err := v.a.endSession(ctx, tx, id); err != nil {
			return err
		}
		return v.a.sessions.Delete(ctx, tx, id, by)
	})
}

// endSession is what belongs to a session's end elsewhere; core.Conflict while
// it runs. The transaction is where it looks for runs: none can be claimed at
// the same time.
func (a *app) endSession(ctx context.Context, tx *store.Tx, id string) error {
	for _, run := range a.bus.Active() {
		if run.Session == id {
			return core.Errorf(core.Conflict, "a run of this session is going on; stop it first")
		}
	}
	return a.guard.ForgetSession(ctx, tx, id)
}

// cleanSessions is the upkeep of archived sessions: a few in each transaction,
// so that messages come in between, and at most 5,000 an hour.
func (a *app) cleanSessions(ctx context.Context) (total int, err error) {
	if a.cfg.RetentionDays == 0 {
		return 0, nil
	}
	for range 100 {
		n := 0
		err := a.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = a.sessions.Cleanup(ctx, tx, a.cfg.RetentionDays, core.Actor{Via: "upkeep"}, a.endSession)
			return err
		})
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
	return total, nil
}
