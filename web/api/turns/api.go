// Package turns takes the messages of programs and shows the runs that answer
// them: as a stream of events, as one JSON object, or later by the id of the run.
package turns

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/session"
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
		// Queued returns how many messages of the sender wait to be answered, at
		// most most.
		Queued(ctx context.Context, bot, sender string, most int) (int, error)
		// Waits reports whether a turn in a chat is stored and has not ended: of the
		// sender and of run, each "" for any.
		Waits(ctx context.Context, bot, chat, sender, run string) (bool, error)
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
		// AbortRun stops a run of a session; one that has not begun when it begins, also after a restart.
		AbortRun(ctx context.Context, session, run string) error
		Run(ctx context.Context, id string) (Run, error)
	}
	// Sessions finds the session of a request (*sessions.Finder). Locate returns
	// the session of an id for p and whether it exists, Owner the user of one
	// or core.NotFound.
	Sessions interface {
		Find(r *http.Request, p auth.Principal) (string, error)
		Locate(ctx context.Context, p auth.Principal, id string) (session string, known bool, err error)
		Owner(ctx context.Context, id string) (user int64, err error)
	}
	// Details reads one session.
	Details interface {
		Detail(ctx context.Context, id string) (session.Detail, error)
	}
	// Streams opens event streams and counts those of a caller (*stream.Streams).
	Streams interface {
		Take(caller string) (release func(), err error)
		Start(w http.ResponseWriter, r *http.Request, endless bool) (*web.Stream, error)
		Run(w http.ResponseWriter, r *http.Request, endless bool, f func(*web.Stream)) error
		Watch(r *http.Request, gone func()) (forget func())
	}
	// An Audit records what is done in no transaction of its own.
	Audit interface {
		Did(ctx context.Context, by core.Actor, action, subject string) error
	}
)

// A Run is a run as the API reads it.
type Run struct {
	ID      string
	Session string
	User    int64
	Ended   bool // done, aborted or failed
}

// Options for New; all are needed.
type Options struct {
	Inbox    Inbox
	Repeats  Repeats
	Follower Follower
	Runs     Runs
	Recent   *Recent
	Sessions Sessions
	Details  Details
	Agents   Agents
	// Model returns why a model of this name cannot answer a turn of p's at trust: core.Invalid
	// where there is none, core.Denied where it is not for them.
	Model   func(p auth.Principal, trust core.Trust, name string) error
	Files   upload.Files
	Streams Streams
	Audit   Audit
	Clock   core.Clock
	Log     *slog.Logger
}

// An API serves the routes of turns and their events.
type API struct {
	Options
	uploads *upload.Reader
}

// New returns an API.
func New(o Options) *API { return &API{Options: o, uploads: upload.New(o.Files)} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"POST /api/chat":                   a.send,
		"GET /api/chat/active-streams":     a.active,
		"GET /api/chat/{id}/events":        a.events,
		"POST /api/chat/{id}/abort":        a.abort,
		"GET /api/chat/{id}/stream-status": a.status,
	}
}
