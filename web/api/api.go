// Package api is the HTTP interface that programs and the panel's chat use.
// openapi.yaml is written first and is the contract: the tests hold every
// request and answer against it.
package api

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/upload"
)

type (
	// An Inbox enqueues turns; a turn with a known UpdateID is dropped without
	// an error.
	Inbox interface {
		Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
	}
	// Repeats knows the message id and the chat that an update was stored with,
	// for as long as a repeat of it is recognised.
	Repeats interface {
		Stored(ctx context.Context, bot, update string) (message, chat string, found bool, err error)
		// Queued is how many messages of the sender wait to be answered, counted up to
		// most.
		Queued(ctx context.Context, bot, sender string, most int) (int, error)
	}
	// A Follower shows the events of runs (*bus.Bus). Follow joins at once and
	// replays what is kept after LastID. With a Run that has ended it ends after
	// what is kept; without a Run it goes on until ctx ends.
	Follower interface {
		Follow(ctx context.Context, f bus.Follow) iter.Seq2[bus.Entry, error]
		Active() []bus.Info
	}
	// Runs knows and stops runs. Run is core.NotFound before a run's first claim.
	Runs interface {
		Abort(session string) bool
		Run(ctx context.Context, id string) (Run, error)
	}
	// Sessions finds conversations. Locate returns the session of an id for
	// user: an own session or alias is known; an unknown one is the id it will
	// get when a turn makes it; another user's is core.NotFound and a
	// malformed or reserved id core.Invalid.
	Sessions interface {
		Locate(ctx context.Context, user int64, id string) (session string, known bool, err error)
		Session(ctx context.Context, id string) (SessionRow, error)
		List(ctx context.Context, q SessionQuery) (rows []SessionRow, next string, err error)
		// Count is how many List would show without search, limit and paging.
		Count(ctx context.Context, q SessionQuery) (int, error)
	}
	// Bots are the connectors. Start, Stop and Test get a bot that States lists.
	Bots interface {
		States() []core.BotState
		Start(ctx context.Context, bot string, by core.Actor) error
		Stop(ctx context.Context, bot string, by core.Actor) error
		Test(ctx context.Context, bot string) (username string, err error)
	}
	// Pairings are the requests of strangers.
	Pairings interface {
		Requests(ctx context.Context, status string, limit int) ([]core.PairingRequest, error)
		Request(ctx context.Context, id string) (core.PairingRequest, error)
	}
	// Decisions decide requests of strangers. A second decision on one is
	// core.Conflict with a text that names who decided first.
	Decisions interface {
		Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error)
		Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
		Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
	}
	// People are the users with access.
	People interface {
		Revoke(ctx context.Context, bot, platformUserID string, by core.Actor) (int, error)
		Access(ctx context.Context, limit int) ([]core.AccessRow, error)
		RemoveAccess(ctx context.Context, id int64, by core.Actor) error
	}
)

// A Run is what the API must know of a run.
type Run struct {
	ID      string
	Session string
	User    int64
	Ended   bool // done, aborted or failed
}

// A Check is one thing readiness depends on. Func gets two seconds.
type Check struct {
	Name string
	Func func(context.Context) error
}

// Options for New. All are needed, unless noted.
type Options struct {
	Door        *auth.Door
	Inbox       Inbox
	Repeats     Repeats
	Follower    Follower
	Runs        Runs
	Sessions    Sessions
	Shelf       Shelf
	Editor      Editor
	Transcripts Transcripts
	Bots        Bots
	Pairings    Pairings
	Decisions   Decisions
	People      People
	Asks        Asks
	Grants      Grants
	Answers     Answers
	Agents      Agents
	Files       upload.Files
	Bell        Bell
	Keys        Keys
	Audit       Log
	Figures     Figures
	Mail        Mail
	Checks      []Check // in addition to the connectors
	Gatherer    prometheus.Gatherer

	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Metrics *web.Metrics // nil: not counted
	Streams int          // open at once per key; 0: 16
}

// An API serves the endpoints of openapi.yaml.
type API struct {
	Options
	slots   *web.Slots
	exports *web.Slots // an export lies in memory until its reader has it
	recent  *recent
	uploads *upload.Reader
	ready   *readiness
	pulse   *web.Pulse
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
	a := &API{Options: o, slots: web.NewSlots(o.Streams), exports: web.NewSlots(maxExports), recent: newRecent(), uploads: upload.New(o.Files), pulse: web.NewPulse(o.Clock)}
	a.ready = &readiness{clock: o.Clock, checks: o.Checks, bots: o.Bots}
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
		"GET /healthz":              a.healthz,
		"GET /openapi.json":         a.openapi,
		"GET /docs":                 a.docs,
		"GET /openapi.yaml":         a.openapiSource,
		"GET /docs/problems/{type}": a.problemType,
	}
}

// routes returns the routes that identify the caller.
func (a *API) routes() map[string]web.Handler {
	all := map[string]web.Handler{
		"POST /api/chat":                           a.send,
		"GET /api/chat":                            a.list,
		"GET /api/chat/active-streams":             a.active,
		"GET /api/chat/count":                      a.count,
		"GET /api/chat/{id}/events":                a.events,
		"POST /api/chat/{id}/abort":                a.abort,
		"GET /api/chat/{id}/stream-status":         a.status,
		"GET /api/bots/status":                     a.botStates,
		"POST /api/bots/{bot}/start":               a.botStart,
		"POST /api/bots/{bot}/stop":                a.botStop,
		"POST /api/bots/{bot}/test":                a.botTest,
		"GET /api/bots/pairing":                    a.requests,
		"GET /api/bots/pairing/{id}":               a.request,
		"POST /api/bots/pairing/{id}/approve":      a.approve,
		"POST /api/bots/pairing/{id}/deny":         a.deny,
		"POST /api/bots/pairing/{id}/block":        a.block,
		"DELETE /api/bots/pairing/{bot}/{user_id}": a.revoke,
		"GET /api/bots/access":                     a.access,
		"DELETE /api/bots/access/{id}":             a.removeAccess,
		"POST /api/chat/{id}/answer":               a.answerQuestion,
		"GET /api/permissions/stream":              a.permissionStream,
		"POST /api/permissions/{id}/grant":         a.grant,
		"POST /api/permissions/{id}/deny":          a.refuseCall,
		"GET /api/permissions/grants":              a.grants,
		"DELETE /api/permissions/grants/{id}":      a.revokeGrant,
		"GET /readyz":                              a.readyz,
		"GET /metrics":                             a.metrics,
	}
	maps.Copy(all, a.sessionRoutes())
	maps.Copy(all, a.accessRoutes())
	return all
}

func (a *API) serve(h web.Handler) http.Handler { return web.Serve(a.Log, web.WriteProblem, h) }

// known adds the Principal to the request before h.
func (a *API) known(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r, err := a.Door.Identify(r)
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
