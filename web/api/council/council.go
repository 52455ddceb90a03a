// Package council serves what councils of several models were asked and answered, picks
// in their disputes, and what is known of the models and domains.
package council

import (
	"context"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/ledger"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// Options for New. All are needed.
type Options struct {
	Store *ledger.Store
	// Pick stores which answer was picked, and shows it in the chat (why.Picks).
	Pick  func(ctx context.Context, user int64, query, model string) (ledger.Picked, error)
	Clock core.Clock
}

// An API serves the routes of councils.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/council/queries":                  a.queries,
		"GET /api/council/queries/{query_id}":       a.query,
		"POST /api/council/queries/{query_id}/pick": a.pick,
		"GET /api/council/models":                   a.models,
		"GET /api/council/reliability":              a.reliability,
		"GET /api/council/analytics":                a.analytics,
		"GET /api/council/domains":                  a.domains,
	}
}

// queries serves GET /api/council/queries: the caller's own.
func (a *API) queries(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	v := r.URL.Query()
	f := ledger.Filter{User: p.User, Conversation: v.Get("session_id"), Cursor: v.Get("cursor")}
	if len(f.Conversation) > 128 || len(f.Cursor) > 256 {
		return core.Errorf(core.Invalid, "session_id or cursor is too long")
	}
	switch v.Get("disputed") {
	case "", "false":
	case "true":
		f.Disputed = true
	default:
		return web.FieldProblem(web.Invalid, "disputed", "must be true or false")
	}
	if f.Limit, err = web.QueryNumber(v, "limit", 50, 1, 200); err != nil {
		return err
	}
	page, next, err := a.o.Store.Queries(r.Context(), f)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"queries": page, "next_cursor": next})
}

// query serves GET /api/council/queries/{query_id}.
func (a *API) query(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	v, err := a.o.Store.Query(r.Context(), p.User, r.PathValue("query_id"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
}

// pick serves POST /api/council/queries/{query_id}/pick.
func (a *API) pick(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	model := ""
	if err := web.ReadFieldsInto(w, r, map[string]any{"model_id": &model}); err != nil {
		return err
	}
	if model == "" || len(model) > 256 {
		return web.FieldProblem(web.Invalid, "model_id", "must be the model of one of the options")
	}
	if _, err := a.o.Pick(r.Context(), p.User, r.PathValue("query_id"), model); err != nil {
		return err
	}
	v, err := a.o.Store.Query(r.Context(), p.User, r.PathValue("query_id"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
}

// models serves GET /api/council/models.
func (a *API) models(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	list, err := a.o.Store.Models(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"models": list})
}

// reach is how far back figures reach unless they are asked for otherwise.
const reach = 30 * 24 * time.Hour

// since returns the caller's start of the figures.
func (a *API) since(r *http.Request) (time.Time, error) {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return time.Time{}, err
	}
	since, err := web.QueryTime(r.URL.Query(), "since")
	if err == nil && since.IsZero() {
		since = a.o.Clock.Now().UTC().Add(-reach).Truncate(24 * time.Hour)
	}
	return since, err
}

// reliability serves GET /api/council/reliability.
func (a *API) reliability(w http.ResponseWriter, r *http.Request) error {
	since, err := a.since(r)
	if err != nil {
		return err
	}
	model := r.URL.Query().Get("model_id")
	if len(model) > 256 {
		return web.FieldProblem(web.Invalid, "model_id", "is over 256 bytes")
	}
	list, err := a.o.Store.Reliability(r.Context(), model, since)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"since": since, "changes": list})
}

// analytics serves GET /api/council/analytics.
func (a *API) analytics(w http.ResponseWriter, r *http.Request) error {
	since, err := a.since(r)
	if err != nil {
		return err
	}
	found, err := a.o.Store.Analyze(r.Context(), since)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, found)
}

// domains serves GET /api/council/domains.
func (a *API) domains(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	found, err := a.o.Store.Ontology(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, found)
}
