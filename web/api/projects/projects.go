// Package projects serves a user's projects.
package projects

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/project"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// Options for New. All are needed.
type Options struct {
	Store *project.Store
	// Did adds an entry to the audit log.
	Did func(ctx context.Context, by core.Actor, action, subject string) error
}

// An API serves the routes of projects.
type API struct {
	projects *project.Store
	did      func(ctx context.Context, by core.Actor, action, subject string) error
}

// New returns an API.
func New(o Options) *API { return &API{o.Store, o.Did} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/projects":         a.list,
		"POST /api/projects":        a.create,
		"PATCH /api/projects/{id}":  a.rename,
		"DELETE /api/projects/{id}": a.remove,
	}
}

// list serves GET /api/projects.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	list, err := a.projects.List(r.Context(), p.User)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"projects": list})
}

// named returns the caller and the name in the body.
func named(w http.ResponseWriter, r *http.Request) (p auth.Principal, name string, err error) {
	if p, err = auth.Require(r, auth.ScopeChat); err != nil {
		return p, "", err
	}
	if err = web.ReadFieldsInto(w, r, map[string]any{"name": &name}); err != nil {
		return p, "", err
	}
	if _, err := project.Name(name); err != nil {
		return p, "", web.FieldProblem(web.Invalid, "name", err.Error())
	}
	return p, name, nil
}

// create serves POST /api/projects.
func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	p, name, err := named(w, r)
	if err != nil {
		return err
	}
	made, err := a.projects.Create(r.Context(), p.User, name)
	if err == nil {
		err = a.did(r.Context(), p.Actor(), "project.create", made.ID)
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, made)
}

// rename serves PATCH /api/projects/{id}.
func (a *API) rename(w http.ResponseWriter, r *http.Request) error {
	p, name, err := named(w, r)
	if err != nil {
		return err
	}
	now, err := a.projects.Rename(r.Context(), p.User, r.PathValue("id"), name)
	if err == nil {
		err = a.did(r.Context(), p.Actor(), "project.rename", now.ID)
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, now)
}

// remove serves DELETE /api/projects/{id}.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err == nil {
		err = a.projects.Delete(r.Context(), p.User, r.PathValue("id"))
	}
	if err == nil {
		err = a.did(r.Context(), p.Actor(), "project.delete", r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
