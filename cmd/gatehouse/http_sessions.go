package main

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
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
func (v shelfView) Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error) {
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

// Delete also takes back what was granted in the session. With versions it is
// for one of these alone, else session.ErrChanged.
func (v editorView) Delete(ctx context.Context, id string, versions []string, by core.Actor) error {
	if err := v.a.lighten(ctx, id); err != nil {
		return err
	}
	return v.a.db.Tx(ctx, func(tx *store.Tx) error {
		if err := v.a.sessions.Match(ctx, tx, id, versions); err != nil {
			return err
		}
		if err := v.a.endSession(ctx, tx, id); err != nil {
			return err
		}
		return v.a.sessions.Delete(ctx, tx, id, by)
	})
}

// lighten makes ready for its deletion a session of which the full-text index
// has a lot, so that the deletion itself is short. One that is being answered
// stays as it is.
func (a *app) lighten(ctx context.Context, id string) error {
	heavy, err := a.sessions.Heavy(ctx, id)
	if err != nil || !heavy || a.answering(id) {
		return err
	}
	return a.sessions.Shed(ctx, id)
}

// answering reports whether a run of the session is going on. In a transaction
// none can be claimed in the meantime.
func (a *app) answering(id string) bool {
	return slices.ContainsFunc(a.bus.Active(), func(run bus.Info) bool { return run.Session == id })
}

// endSession removes what other packages keep of a session; core.Conflict while
// it runs. The transaction is where it looks for runs: none can be claimed at
// the same time.
func (a *app) endSession(ctx context.Context, tx *store.Tx, id string) error {
	if a.answering(id) {
		return core.Errorf(core.Conflict, "a run of this session is going on; stop it first")
	}
	return a.guard.ForgetSession(ctx, tx, id)
}

// cleanAtOnce is how many sessions one transaction of cleanSessions deletes.
const cleanAtOnce = 10

// cleanSessions deletes archived sessions that are due, a few in each transaction,
// so that messages come in between, and at most 5,000 an hour.
func (a *app) cleanSessions(ctx context.Context) (total int, err error) {
	days := a.cfg.RetentionDays
	if days == 0 {
		return 0, nil
	}
	due, err := a.sessions.Due(ctx, days)
	for ids := range slices.Chunk(due, cleanAtOnce) {
		for _, id := range ids {
			if err == nil {
				err = a.lighten(ctx, id)
			}
		}
		if err != nil {
			return total, err
		}
		n := 0
		err = a.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = a.sessions.Cleanup(ctx, tx, ids, days, core.Actor{Via: "upkeep"}, a.endSession)
			return err
		})
		total += n
	}
	return total, err
}
