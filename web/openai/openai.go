package openai

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// Module is that of the sessions that requests leave: one for each, since the
// client keeps the conversation. Lists leave them out unless they are asked for.
const Module = "openai"

// Bounds of a request.
const (
	MaxBody     = 10 << 20  // bytes, pictures in base64 included
	MaxMessage  = 100 << 10 // bytes of one message's text, and of all system messages together
	maxMessages = 2048
	maxPictures = 20
	maxPicture  = 5 << 20 // bytes of one, decoded
	maxStops    = 4
	maxStop     = 1 << 10 // bytes of one
)

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
	Door     *auth.Door
	Inbox    Inbox
	Follower Follower
	Runs     Runs
	Models   Models

	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Metrics *web.Metrics // nil: not counted
	Open    int          // answers at once per key; 0: 16
}

// An API serves /v1.
type API struct {
	Options
	slots *web.Slots
	pulse *web.Pulse
	born  time.Time // represents when a model was made
}

// New returns an API.
func New(o Options) *API {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Open == 0 {
		o.Open = 16
	}
	return &API{Options: o, slots: web.NewSlots(o.Open), pulse: web.NewPulse(o.Clock), born: o.Clock.Now()}
}

// Register adds the routes to mux. They expect a web.Site in front of mux.
func (a *API) Register(mux *http.ServeMux) {
	for pattern, h := range a.routes() {
		mux.Handle(pattern, web.Serve(a.Log, show, a.known(h)))
	}
	for pattern, h := range map[string]web.Handler{
		"/v1/models":            only("GET"),
		"/v1/models/{model...}": only("GET"),
		"/v1/chat/completions":  only("POST"),
		"/v1/":                  nowhere,
	} {
		mux.Handle(pattern, web.Serve(a.Log, show, a.known(h)))
	}
}

func (a *API) routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /v1/models":            a.list,
		"GET /v1/models/{model...}": a.model,
		"POST /v1/chat/completions": a.complete,
	}
}

// Routes returns the patterns that are served, for the test that all are
// documented.
func (a *API) Routes() []string { return slices.Collect(maps.Keys(a.routes())) }

// known inserts the Principal into the request before h. No one at all is let
// through to no address.
func (a *API) known(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r, err := a.Door.Identify(r)
		if err != nil {
			return err
		}
		if _, err := auth.Require(r, auth.ScopeChat); err != nil {
			return err
		}
		return h(w, r)
	}
}

func only(method string) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", method)
		return refuse(web.MethodNotAllowed, "method_not_supported", "", fmt.Sprintf("Not allowed to %s on %s. (HINT: Perhaps you meant to make a %s request instead?)", r.Method, core.CutRunes(r.URL.Path, 200), method))
	}
}

func nowhere(_ http.ResponseWriter, r *http.Request) error {
	return refuse(web.NotFound, "unknown_url", "", fmt.Sprintf("Unknown request URL: %s %s. There are GET /v1/models and POST /v1/chat/completions.", r.Method, core.CutRunes(r.URL.Path, 200)))
}

type wireModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (a *API) wire(m Model) wireModel {
	return wireModel{ID: m.ID, Object: "model", Created: a.born.Unix(), OwnedBy: m.Owner}
}

// list serves GET /v1/models.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	data := []wireModel{}
	for _, m := range a.Models.Models(p) {
		data = append(data, a.wire(m))
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// model serves GET /v1/models/{model}.
func (a *API) model(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	m, err := a.find(p, r.PathValue("model"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, a.wire(m))
}

// find returns the model that a request names.
func (a *API) find(p auth.Principal, id string) (Model, error) {
	for _, m := range a.Models.Models(p) {
		if m.ID == id {
			return m, nil
		}
	}
	return Model{}, refuse(web.NotFound, "model_not_found", "model",
		fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", core.CutRunes(core.CleanName(id), 200)))
}
