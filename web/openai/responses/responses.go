package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/response"
	"gatehouse/web"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

type (
	// Runs knows how far a run is.
	Runs interface {
		// Run reports whether a run has begun and ended; neither where it is unknown.
		Run(ctx context.Context, id string) (begun, ended bool, err error)
		// Queued reports whether the turn with this id in the inbox was stored recently.
		Queued(ctx context.Context, update string) (bool, error)
		// Latest returns the newest run of a session, "" without one, and how many it has.
		Latest(ctx context.Context, session string) (run string, of int, err error)
	}
	// Sessions knows the sessions; core.NotFound without it.
	Sessions interface {
		// Trust returns the ceiling of a session's turns.
		Trust(ctx context.Context, id string) (core.Trust, error)
		// Delete deletes a session with its files; core.Conflict while a run of it is going on.
		Delete(ctx context.Context, id string) error
	}
)

// Options for New. All are needed, unless noted.
type Options struct {
	Desk     *answer.Desk
	Rows     *response.Store
	Runs     Runs
	Sessions Sessions
	Registry prometheus.Registerer // nil: nothing is counted
}

// An API serves /v1/responses.
type API struct {
	Options
	total *prometheus.CounterVec
}

// New returns an API.
func New(o Options) *API {
	a := &API{Options: o, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_openai_responses_total", Help: "Responses of OpenAI's Responses API that ended, by status.",
	}, []string{"status"})}
	for _, status := range []string{completed, incomplete, failed, cancelled} {
		a.total.WithLabelValues(status)
	}
	if o.Registry != nil {
		o.Registry.MustRegister(a.total)
	}
	return a
}

// Register adds the routes to mux.
func (a *API) Register(mux *http.ServeMux) { a.Desk.Register(mux, a.routes()) }

func (a *API) routes() map[string]web.Handler {
	return map[string]web.Handler{
		"POST /v1/responses":                 a.create,
		"GET /v1/responses/{id}":             a.get,
		"DELETE /v1/responses/{id}":          a.remove,
		"GET /v1/responses/{id}/input_items": a.items,
		"POST /v1/responses/{id}/cancel":     a.cancel,
	}
}

// Routes returns the patterns that are served, for the test that all are
// documented.
func (a *API) Routes() []string { return slices.Collect(maps.Keys(a.routes())) }

// find returns a user's response and what was asked; param names the id in errors,
// "" where it is in the address.
func (a *API) find(ctx context.Context, user int64, id, param string) (row response.Row, q request, err error) {
	if err = core.Errorf(core.NotFound, "no id of a response"); isID(id) {
		row, err = a.Rows.Get(ctx, user, id)
	}
	if core.KindOf(err) == core.NotFound {
		code := ""
		if param == "previous_response_id" {
			code = "previous_response_not_found"
		}
		return row, q, refusal.New(web.NotFound, code, param, fmt.Sprintf("Response with id '%s' not found.", core.CutRunes(core.CleanName(id), 100)))
	}
	if err == nil {
		err = json.Unmarshal(row.Request, &q)
	}
	return row, q, err
}

// outcomeOf returns the outcome that is stored with row; ok is false while it is open.
func outcomeOf(row response.Row) (o outcome, ok bool, err error) {
	if row.Answer == nil {
		return o, false, nil
	}
	err = json.Unmarshal(row.Answer, &o)
	return o, err == nil, err
}

// end stores the outcome of an open response, without its text where it is not to be
// read.
func (a *API) end(ctx context.Context, row response.Row, o outcome) error {
	stored := []byte{}
	if !row.Hidden {
		var err error
		if stored, err = json.Marshal(o); err != nil {
			return err
		}
	}
	first, err := a.Rows.End(context.WithoutCancel(ctx), row.ID, stored)
	if first {
		a.total.WithLabelValues(o.Status).Inc()
	}
	return err
}
