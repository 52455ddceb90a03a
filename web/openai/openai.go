package openai

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// Bounds of a request.
const (
	maxModel = 1 << 10 // bytes of a name
	maxStops = 4
	maxStop  = 1 << 10 // bytes of one
)

// An API serves /v1.
type API struct {
	*answer.Desk
	born time.Time // represents when a model was made
}

// New returns an API.
func New(d *answer.Desk) *API { return &API{d, d.Clock.Now()} }

// Register adds the routes to mux, and every other address below /v1.
func (a *API) Register(mux *http.ServeMux) {
	a.Desk.Register(mux, a.routes())
	mux.Handle("/v1/", a.Serve(nowhere))
}

func (a *API) routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /v1/models":            a.list,
		"GET /v1/models/{model...}": a.one,
		"POST /v1/chat/completions": a.complete,
	}
}

// Routes returns the patterns that are served, for the test that all are
// documented.
func (a *API) Routes() []string { return slices.Collect(maps.Keys(a.routes())) }

func nowhere(_ http.ResponseWriter, r *http.Request) error {
	return refusal.New(web.NotFound, "unknown_url", "", fmt.Sprintf("Unknown request URL: %s %s. GET /openapi.json lists those that there are.", r.Method, core.CutRunes(r.URL.Path, 200)))
}

type wireModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (a *API) wire(m answer.Model) wireModel {
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

// one serves GET /v1/models/{model}.
func (a *API) one(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	m, err := a.Model(p, r.PathValue("model"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, a.wire(m))
}
