// Package api is the HTTP interface that programs and the panel's chat use.
// openapi.yaml is written first and is the contract: the tests hold every
// request and answer against it.
package api

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/session"
	"gatehouse/web"
	"gatehouse/web/api/access"
	"gatehouse/web/api/bots"
	"gatehouse/web/api/contexts"
	"gatehouse/web/api/council"
	"gatehouse/web/api/daily"
	"gatehouse/web/api/find"
	"gatehouse/web/api/handoffs"
	"gatehouse/web/api/health"
	"gatehouse/web/api/imports"
	"gatehouse/web/api/journal"
	"gatehouse/web/api/memory"
	"gatehouse/web/api/passages"
	"gatehouse/web/api/permissions"
	"gatehouse/web/api/projects"
	"gatehouse/web/api/reports"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/stream"
	"gatehouse/web/api/sync"
	"gatehouse/web/api/turns"
	"gatehouse/web/api/voice"
	"gatehouse/web/auth"
	"gatehouse/web/upload"
)

// Sessions finds sessions.
type Sessions interface {
	sessions.Locator
	sessions.Lists
}

// A Log is the audit log.
type Log interface {
	turns.Audit
	reports.Log
}

// Options for New. All are needed, unless noted.
type Options struct {
	Authenticator *auth.Authenticator
	Inbox         turns.Inbox
	Repeats       turns.Repeats
	Follower      turns.Follower
	Runs          turns.Runs
	Agents        turns.Agents
	Model         func(p auth.Principal, trust core.Trust, name string) error // as turns.Options has it
	Sessions      Sessions
	Finder        find.Finder
	Journal       journal.Options
	Memory        memory.Options
	Sync          sync.Options
	Daily         daily.Options
	Contexts      contexts.Options
	Council       council.Options // the clock is the API's
	Imports       imports.Options // Streams are the API's
	Passages      passages.Options
	Projects      projects.Options // Did is the API's
	Handoffs      handoffs.Options // Finder is the API's
	Voice         voice.Hearer
	Reader        sessions.Reader
	Editor        sessions.Editor
	Transcripts   sessions.Transcripts
	Failures      sessions.Failures
	Bots          bots.Bots
	Mail          bots.Mail
	Pairings      access.Pairings
	Decisions     access.Decisions
	People        access.People
	Keys          access.Keys
	Asks          permissions.Asks
	Grants        permissions.Grants
	Answers       permissions.Answers
	Bell          permissions.Bell
	Audit         Log
	Figures       reports.Figures
	Files         upload.Files
	Checks        []health.Check // in addition to the connectors
	Gatherer      prometheus.Gatherer

	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Metrics *web.Metrics // nil: not counted
	Streams int          // open at once per key; 0: 16
}

// An API serves the endpoints of openapi.yaml.
type API struct {
	Options
	streams *stream.Streams
	finder  *sessions.Finder
	turns   *turns.API
	groups  []group
}

// A group serves routes of one subject.
type group interface {
	Routes() map[string]web.Handler // by pattern
}

// New prepares the API.
func New(o Options) *API {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Streams == 0 {
		o.Streams = 16
	}
	a := &API{Options: o, streams: stream.New(o.Authenticator, o.Clock, o.Metrics, o.Streams)}
	o.Imports.Streams, o.Sync.Watch = a.streams, a.streams.Watch
	o.Council.Clock = o.Clock
	if o.Audit != nil {
		o.Contexts.Did, o.Passages.Did, o.Projects.Did = o.Audit.Did, o.Audit.Did, o.Audit.Did
	}
	recent := turns.NewRecent(o.Repeats)
	a.finder = sessions.NewFinder(o.Sessions, recent, o.Reader)
	o.Handoffs.Finder = a.finder
	a.turns = turns.New(turns.Options{
		Inbox: o.Inbox, Repeats: o.Repeats, Follower: o.Follower, Runs: o.Runs, Recent: recent, Sessions: a.finder, Details: o.Reader,
		Agents: o.Agents, Model: o.Model, Files: o.Files, Streams: a.streams, Audit: o.Audit, Clock: o.Clock, Log: o.Log,
	})
	byBot := bots.New(o.Bots, o.Mail, o.Files)
	a.groups = []group{
		a.turns,
		sessions.New(sessions.Options{Finder: a.finder, Lists: o.Sessions, Reader: o.Reader, Editor: o.Editor, Transcripts: o.Transcripts, Failures: o.Failures}),
		find.New(o.Finder),
		imports.New(o.Imports),
		journal.New(o.Journal), memory.New(o.Memory),
		sync.New(o.Sync),
		daily.New(o.Daily),
		contexts.New(o.Contexts),
		council.New(o.Council),
		passages.New(o.Passages),
		handoffs.New(o.Handoffs),
		projects.New(o.Projects),
		voice.New(voice.Options{Hearer: o.Voice, Streams: a.streams, Clock: o.Clock, Log: o.Log}),
		byBot,
		access.New(access.Options{Pairings: o.Pairings, Decisions: o.Decisions, People: o.People, Bots: byBot, Keys: o.Keys, Clock: o.Clock}),
		permissions.New(permissions.Options{Asks: o.Asks, Grants: o.Grants, Answers: o.Answers, Bell: o.Bell, Sessions: a.finder, Streams: a.streams, Clock: o.Clock, Log: o.Log}),
		reports.New(o.Audit, o.Figures, o.Clock),
		health.New(o.Checks, o.Bots, o.Clock, o.Gatherer),
	}
	return a
}

// Register adds the routes to mux. They expect a web.Site in front of mux.
func (a *API) Register(mux *http.ServeMux) {
	for pattern, h := range a.routes() {
		mux.Handle(pattern, a.serve(a.known(h)))
	}
	for pattern, h := range a.openRoutes() {
		mux.Handle(pattern, a.serve(h))
	}
	mux.Handle("/api/", a.serve(a.known(nowhere(mux))))
}

// Routes returns the patterns that are served, for the test that all are
// documented.
func (a *API) Routes() []string {
	return slices.Concat(slices.Collect(maps.Keys(a.routes())), slices.Collect(maps.Keys(a.openRoutes())))
}

// openRoutes returns the routes that need no key.
func (a *API) openRoutes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /healthz":              health.Live,
		"GET /openapi.json":         a.openapi,
		"GET /docs":                 a.docs,
		"GET /openapi.yaml":         a.openapiSource,
		"GET /docs/problems/{type}": a.problemType,
	}
}

// routes returns the routes that identify the caller.
func (a *API) routes() map[string]web.Handler {
	all := map[string]web.Handler{}
	for _, g := range a.groups {
		maps.Copy(all, g.Routes())
	}
	return all
}

// Converse serves POST /api/chat with another form of stream: write is called for
// every event, in order. An error of write ends the stream.
func (a *API) Converse(w http.ResponseWriter, r *http.Request, write func(*web.Stream, bus.Entry) error) error {
	return a.turns.Converse(w, r, write)
}

// Found returns the caller, who has one of the scopes, and the session in the
// address, which the caller may see.
func (a *API) Found(r *http.Request, scopes ...string) (auth.Principal, session.Detail, error) {
	return a.finder.Found(r, scopes...)
}

// Serve returns h with what every route has: the caller is identified, errors
// become problems.
func (a *API) Serve(h web.Handler) http.Handler { return a.serve(a.known(h)) }

func (a *API) serve(h web.Handler) http.Handler { return web.Serve(a.Log, web.WriteProblem, h) }

// known adds the Principal to the request before h.
func (a *API) known(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r, err := a.Authenticator.Identify(r)
		if err != nil {
			return err
		}
		return h(w, r)
	}
}

// nowhere answers for addresses under /api/ that no route has: 405 with the
// methods that exist, else 404. A caller without a key or session gets 401.
func nowhere(mux *http.ServeMux) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := auth.Require(r, auth.Scopes()...); err != nil {
			return err
		}
		allowed := web.Allowed(mux, r, "/api/", "/")
		if allowed == "" {
			return web.Refuse(web.NotFound, "there is no such address")
		}
		w.Header().Set("Allow", allowed)
		return web.Refuse(web.MethodNotAllowed, "this address takes "+allowed)
	}
}
