// Package handoffs serves notes on conversations: one to hand off, how far notes cover
// conversations, and a note that is written now.
package handoffs

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/session"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Backups has the notes (backup.Store).
	Backups interface {
		Coverage(ctx context.Context, user int64) ([]handoff.Coverage, error)
		Write(ctx context.Context, session, model string) (handoff.Backup, error)
	}
	// Finder finds the session in the address of a request, for callers who may see it.
	Finder interface {
		Found(r *http.Request, scopes ...string) (auth.Principal, session.Detail, error)
		Find(r *http.Request, p auth.Principal) (string, error)
	}
)

// Options for New. All are needed.
type Options struct {
	Backups Backups
	// Markdown returns what another tool needs to go on with a session, for the user who
	// reads it; core.NotFound before there is anything.
	Markdown func(ctx context.Context, s session.Session, reader int64) (string, error)
	Finder   Finder // the API's
}

// An API serves the routes of notes.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/sessions/{id}/handoff":    a.handoff,
		"GET /api/context/backups/coverage": a.coverage,
		"POST /api/context/backups/run":     a.run,
	}
}

// handoff serves GET /api/sessions/{id}/handoff.
func (a *API) handoff(w http.ResponseWriter, r *http.Request) error {
	p, d, err := a.o.Finder.Found(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	text, err := a.o.Markdown(r.Context(), d.Session, p.User)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(text)) // the client may be gone
	return nil
}

// coverage serves GET /api/context/backups/coverage: of the caller's conversations, with
// the scopes admin and read of all.
func (a *API) coverage(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	user := p.User
	if p.ReadsEveryone() {
		user = 0
	}
	list, err := a.o.Backups.Coverage(r.Context(), user)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"coverage": list})
}

// run serves POST /api/context/backups/run. It answers when the note is written.
func (a *API) run(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	var in struct{ session, model string }
	if err := web.ReadFieldsInto(w, r, map[string]any{"session_id": &in.session, "model_id": &in.model}); err != nil {
		return err
	}
	if in.session == "" {
		return web.FieldProblem(web.Invalid, "session_id", "name the session to write a backup of")
	}
	r.SetPathValue("id", in.session)
	id, err := a.o.Finder.Find(r, p)
	if err != nil {
		return err
	}
	b, err := a.o.Backups.Write(r.Context(), id, in.model)
	if core.KindOf(err) == core.Invalid { // a model that is not configured any more
		return web.FieldProblem(web.Invalid, "model_id", core.TextOf(err))
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, b)
}
