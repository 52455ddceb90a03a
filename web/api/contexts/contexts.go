// Package contexts serves the saved contexts.
package contexts

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/contexts"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// Store keeps saved contexts (contexts.Store).
type Store interface {
	Get(name string) (contexts.Context, error)
	Put(c contexts.Context) (contexts.Context, error)
	Delete(name string) error
}

// Options for New. All are needed.
type Options struct {
	Store Store
	// May reports whether a user at this trust may read a file of the vault.
	May func(trust core.Trust, user int64, name string) bool
	// Did adds an entry to the audit log.
	Did func(ctx context.Context, by core.Actor, action, subject string) error
}

// An API serves the routes of saved contexts.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/contexts/{name}":    a.get,
		"PUT /api/contexts/{name}":    a.put,
		"DELETE /api/contexts/{name}": a.remove,
	}
}

// allowed returns the caller: saved contexts are the owner's, whose file the key's trust
// has to reach.
func (a *API) allowed(r *http.Request, scopes ...string) (auth.Principal, error) {
	p, err := auth.Require(r, scopes...)
	if err != nil {
		return p, err
	}
	if err := contexts.CheckName(r.PathValue("name")); err != nil {
		return p, web.FieldProblem(web.Invalid, "name", core.TextOf(err))
	}
	if !a.o.May(p.Trust, p.User, contexts.Dir+"/"+r.PathValue("name")+".json") {
		return p, core.Errorf(core.Denied, "saved contexts are not open at this key's trust level")
	}
	return p, nil
}

// changes returns the caller, who may change saved contexts: reading rights that the settings give
// to guests are none to write.
func (a *API) changes(r *http.Request) (auth.Principal, error) {
	p, err := a.allowed(r, auth.ScopeChat)
	if err == nil && p.Trust < core.Vault {
		err = core.Errorf(core.Denied, "saved contexts cannot be changed at this key's trust level")
	}
	return p, err
}

// mine returns which paths the caller may read.
func (a *API) mine(p auth.Principal) func(name string) bool {
	return func(name string) bool { return a.o.May(p.Trust, p.User, name) }
}

// get serves GET /api/contexts/{name}, with the paths that the caller may read.
func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	p, err := a.allowed(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	c, err := a.o.Store.Get(r.PathValue("name"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, c.Only(a.mine(p)))
}

// put serves PUT /api/contexts/{name}. A path that the caller may not read is refused.
func (a *API) put(w http.ResponseWriter, r *http.Request) error {
	p, err := a.changes(r)
	if err != nil {
		return err
	}
	c := contexts.Context{Name: r.PathValue("name")}
	if err := web.ReadFieldsInto(w, r, map[string]any{"description": &c.Description, "folders": &c.Folders, "files": &c.Files}); err != nil {
		return err
	}
	if _, left := c.Paths(a.mine(p)); left > 0 {
		return core.Errorf(core.Denied, "one of the paths is not open at this key's trust level")
	}
	if c, err = a.o.Store.Put(c); err != nil {
		return err
	}
	if err := a.o.Did(r.Context(), p.Actor(), "context.save", c.Name); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, c)
}

// remove serves DELETE /api/contexts/{name}.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	p, err := a.changes(r)
	if err == nil {
		err = a.o.Store.Delete(r.PathValue("name"))
	}
	if err == nil {
		err = a.o.Did(r.Context(), p.Actor(), "context.delete", r.PathValue("name"))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
