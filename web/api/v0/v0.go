// Package v0 serves the first generation's routes in its own format: camelCase,
// text that is sent whole each time, one agent for a conversation. Its routes
// have a mux of their own, as /api/chat/session/{id} and /api/chat/{id}/events
// cannot be on one. What they do is done by the routes of today.
package v0

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Today is the API of today (*api.API).
	Today interface {
		Converse(w http.ResponseWriter, r *http.Request, write func(*web.Stream, bus.Entry) error) error
		Found(r *http.Request, scopes ...string) (auth.Principal, session.Detail, error)
		Serve(h web.Handler) http.Handler
	}
	// Sessions reads sessions. Page notes that one was opened. The caller has checked that the
	// asker may see them.
	Sessions interface {
		List(ctx context.Context, f session.Filter) (page []session.Session, next string, err error)
		Count(ctx context.Context, f session.Filter) (int, error)
		Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error)
	}
	// An Editor changes and deletes sessions, as the API of today does.
	Editor interface {
		Update(ctx context.Context, id string, c session.Change, by core.Actor) (session.Detail, error)
		Delete(ctx context.Context, id string, versions []string, by core.Actor) error
	}
)

// An Agent is who may answer; Path is its file in the vault, "" for the one
// that every vault has.
type Agent struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Description string `json:"description"`
	Model       string `json:"model"`
}

// Options of New; all are needed but Clock.
type Options struct {
	Today    Today
	Sessions Sessions
	Editor   Editor
	Agents   func() []Agent
	Memory   func() (rss int64, sessions int) // bytes that the process takes; conversations in memory
	Clock    core.Clock                       // nil: the system's
}

// An API serves the first generation's routes.
type API struct {
	Options
	began time.Time
	mux   *http.ServeMux
}

// New returns an API.
func New(o Options) *API {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	a := &API{Options: o, began: o.Clock.Now(), mux: http.NewServeMux()}
	for pattern, h := range a.routes() {
		a.mux.Handle(pattern, o.Today.Serve(h))
	}
	return a
}

func (a *API) routes() map[string]web.Handler {
	return map[string]web.Handler{
		"POST /api/chat/stream":                 a.stream,
		"GET /api/chat/sessions":                a.list,
		"GET /api/chat/session/{id}":            a.read,
		"DELETE /api/chat/session/{id}":         a.remove,
		"POST /api/chat/session/{id}/archive":   a.archive(true),
		"POST /api/chat/session/{id}/unarchive": a.archive(false),
		"DELETE /api/chat/session":              a.clear,
		"GET /api/agents":                       a.agents,
		"GET /api/stats":                        a.stats,
	}
}

// Routes returns the patterns that are served, for the test that all are
// documented.
func (a *API) Routes() (patterns []string) {
	for p := range a.routes() {
		patterns = append(patterns, p)
	}
	return patterns
}

// Wrap serves the first generation's routes in front of next, which gets
// everything else, wrong methods and unknown paths too.
func (a *API) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			next.ServeHTTP(w, r)
			return
		}
		_, pattern := a.mux.Handler(r)
		switch {
		case pattern != "":
			a.mux.ServeHTTP(w, r)
		case a.allowed(r) != "":
			a.Today.Serve(a.wrongMethod).ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// allowed returns the methods of the route that r's path has here; "" when it has
// none. /api/chat/session is also a path of today, with an id.
func (a *API) allowed(r *http.Request) string {
	var methods []string
	for _, method := range []string{"GET", "POST", "DELETE"} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := a.mux.Handler(probe); pattern != "" {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}

func (a *API) wrongMethod(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.Scopes()...); err != nil {
		return err
	}
	w.Header().Set("Allow", a.allowed(r))
	return web.Refuse(web.MethodNotAllowed, "this address takes "+a.allowed(r))
}
