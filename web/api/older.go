package api

import (
	"net/http"

	"gatehouse/core/session"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// What the first generation's routes, in a package of their own, share with
// these.

// Found returns the session that the path value id means, as the caller may see it,
// and the caller, who has one of the scopes.
func (a *API) Found(r *http.Request, scopes ...string) (auth.Principal, session.Detail, error) {
	return a.found(r, scopes...)
}

// Serve returns h with what every route has: the caller is identified, errors
// become problems.
func (a *API) Serve(h web.Handler) http.Handler { return a.serve(a.known(h)) }
