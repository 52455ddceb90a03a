package answer

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/refusal"
)

// Module is that of the sessions that requests leave. Lists leave them out unless
// they are asked for.
const Module = "openai"

// MaxBody is the most bytes of a request, pictures in base64 included.
const MaxBody = 10 << 20

type (
	// An Inbox takes turns in.
	Inbox interface {
		Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
	}
	// A Follower shows the events of a session's runs (*bus.Bus), joined when it
	// returns and on until ctx ends.
	Follower interface {
		Follow(ctx context.Context, f bus.Follow) iter.Seq2[bus.Entry, error]
	}
	// Runs stops runs; false when none of that session is going on.
	Runs interface {
		Abort(session string) bool
	}
	// Models are what p may name in a request, at most a few hundred.
	Models interface {
		Models(p auth.Principal) []Model
	}
)

// A Model is an agent or a configured model, as clients name it.
type Model struct {
	ID    string
	Owner string // "agent", or who serves the model: "openai", "local"
	Agent string // the agent that answers; "" is the default one
	Model string // the model asked for; "" is the agent's
}

// Options for New. All are needed, unless noted.
type Options struct {
	Authenticator *auth.Authenticator
	Inbox         Inbox
	Follower      Follower
	Runs          Runs
	Models        Models

	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Metrics *web.Metrics // nil: not counted
	Open    int          // answers at once per key; 0: 16
}

// A Desk is where requests are answered. It is safe for concurrent use.
type Desk struct {
	Options
	slots *web.Slots
	pulse *web.Pulse
}

// New returns a Desk.
func New(o Options) *Desk {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Open == 0 {
		o.Open = 16
	}
	return &Desk{Options: o, slots: web.NewSlots(o.Open), pulse: web.NewPulse(o.Clock)}
}

// Register adds routes to mux, with errors in OpenAI's form and for callers with
// the scope chat alone; other methods of their addresses are refused. They expect
// a web.Site in front of mux.
func (d *Desk) Register(mux *http.ServeMux, routes map[string]web.Handler) {
	methods := map[string][]string{}
	for pattern, h := range routes {
		mux.Handle(pattern, d.Serve(h))
		if method, path, ok := strings.Cut(pattern, " "); ok {
			methods[path] = append(methods[path], method)
		}
	}
	for path := range maps.Keys(methods) {
		mux.Handle(path, d.Serve(only(methods[path])))
	}
}

// Serve makes h an http.Handler. No one at all is let through to no address.
func (d *Desk) Serve(h web.Handler) http.Handler {
	return web.Serve(d.Log, refusal.Show, func(w http.ResponseWriter, r *http.Request) error {
		r, err := d.Authenticator.Identify(r)
		if err != nil {
			return err
		}
		if _, err := auth.Require(r, auth.ScopeChat); err != nil {
			return err
		}
		return h(w, r)
	})
}

// Wait counts one more answer that p waits for; call release once when it ends.
func (d *Desk) Wait(p auth.Principal) (release func(), err error) {
	release, ok := d.slots.Take(caller(p))
	if !ok {
		p := refusal.New(web.TooManyRequests, "rate_limit_exceeded", "", fmt.Sprintf("At most %d requests may be open at once per key.", d.slots.Most()))
		p.RetryAfter = web.RetrySoon
		return nil, p
	}
	return release, nil
}

// UpdateID returns the id that the turn of a run has in the inbox.
func UpdateID(run string) string { return "openai:" + run }

// space makes ids of runs from idempotency keys: the same key, the same run.
var space = uuid.MustParse("0d7c2f5c-3a55-4a53-8f60-5a7f2e3f9b14")

// RunOf returns the id of the run of p's requests with an Idempotency-Key.
func RunOf(p auth.Principal, key string) string {
	return uuid.NewSHA1(space, []byte(caller(p)+"\x00"+key)).String()
}

// caller names who is limited: the key, or the user of an admin session.
func caller(p auth.Principal) string {
	if p.Key != "" {
		return p.Key
	}
	return "user" + strconv.FormatInt(p.User, 10)
}

// Model returns the model that a request of p's names. The council at balanced has two names, of which one is listed.
func (d *Desk) Model(p auth.Principal, id string) (Model, error) {
	name := id
	if level := core.CouncilLevel(id); level != "" {
		name = core.CouncilModel(level)
	}
	for _, m := range d.Models.Models(p) {
		if m.ID == name {
			return m, nil
		}
	}
	return Model{}, refusal.New(web.NotFound, "model_not_found", "model",
		fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", core.CutRunes(core.CleanName(id), 200)))
}

// Inbound returns the turn of o's run in o's session with m: what the client may
// not decide is set here, from p.
func (d *Desk) Inbound(p auth.Principal, m Model, text string, o core.Options) core.Inbound {
	o.User, o.Key, o.Alone, o.Agent, o.Model, o.Module = p.User, p.Key, true, m.Agent, m.Model, Module
	return core.Inbound{
		UpdateID:  UpdateID(o.Run),
		Address:   core.Address{Bot: core.APIBot, Chat: o.Session},
		Kind:      core.KindMessage,
		From:      core.Peer{Platform: core.APIBot, ID: "user:" + strconv.FormatInt(p.User, 10)},
		At:        d.Clock.Now().UTC(),
		Text:      text,
		Addressed: true,
		Turn:      &o,
	}
}

func only(methods []string) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		allowed := strings.Join(methods, ", ")
		w.Header().Set("Allow", allowed)
		return refusal.New(web.MethodNotAllowed, "method_not_supported", "", fmt.Sprintf("Not allowed to %s on %s. (HINT: Perhaps you meant to make a %s request instead?)", r.Method, core.CutRunes(r.URL.Path, 200), allowed))
	}
}
