package views

import (
	"cmp"
	"context"

	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web/api/sessions"
)

// sessionView is core/session as the API and the panel read it: one type for both, since
// each embedding of the store adds its hundred methods to the program.
type sessionView struct {
	*session.Store
	c     *Core
	touch bool // note that a session was opened
}

func (v sessionView) Detail(ctx context.Context, id string) (session.Detail, error) {
	return v.Store.Detail(ctx, v.c.DB, id)
}

// Page notes that the session was opened, where its end is read and touch is set.
func (v sessionView) Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error) {
	if v.touch && q.Before == "" && q.After == "" {
		v.c.SessionStore.Touch(s.ID)
	}
	return v.Store.Page(ctx, s, q)
}

// failuresView is why the newest turns of sessions failed.
type failuresView struct{ events *runs.Store }

func (v failuresView) LastError(ctx context.Context, session string) (*sessions.LastError, error) {
	lines, err := v.events.LinesOf(ctx, session, 1)
	if err != nil || len(lines) == 0 || lines[0].State != "error" {
		return nil, err
	}
	l := lines[0]
	return &sessions.LastError{Kind: l.Error, Message: cmp.Or(l.Reason, "The answer failed."), Run: l.ID, At: l.Ended,
		Provider: l.Said, Setting: l.Setting, Advice: runs.Advice(l.Error, l.Setting)}, nil
}
