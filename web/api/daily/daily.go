// Package daily serves the daily agents: when they run, how their runs went, and runs by
// hand.
package daily

import (
	"context"
	"net/http"
	"time"

	"gatehouse/core"
	agents "gatehouse/core/schedule/daily"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Lists are the agents and their runs (schedule.Scheduler).
	Lists interface {
		List(ctx context.Context) ([]agents.Line, []agents.Fault, error)
		Line(ctx context.Context, name string) (agents.Line, error)
		History(ctx context.Context, name string, limit int) ([]agents.Run, error)
	}
	// A Starter starts runs. A date that was run is agents.Skipped, unless it is forced.
	Starter interface {
		Start(ctx context.Context, name, date string, force bool, by core.Actor) (agents.Run, error)
	}
)

// Options for New. Both are needed.
type Options struct {
	Lists   Lists
	Starter Starter
}

// An API serves the routes of daily agents.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/scheduler":                   a.scheduler,
		"GET /api/daily/agents":                a.list,
		"GET /api/daily/agents/{name}":         a.one,
		"POST /api/daily/agents/{name}/run":    a.run,
		"GET /api/daily/agents/{name}/history": a.history,
	}
}

// An Agent is a daily agent as clients read it.
type Agent struct {
	Name        string    `json:"name"`
	DisplayName string    `json:"display_name"`
	Description string    `json:"description"`
	Schedule    string    `json:"schedule"`
	Enabled     bool      `json:"schedule_enabled"`
	Timezone    string    `json:"timezone"`
	Output      string    `json:"output"`
	Tools       []string  `json:"tools"`
	Model       string    `json:"model"`
	Trust       string    `json:"trust_level"`
	Path        string    `json:"path"`
	Next        time.Time `json:"next_run,omitzero"`
	Last        *Run      `json:"last_run,omitempty"`
}

// A Run is a run of a daily agent as clients read it.
type Run struct {
	Date    string    `json:"date"`
	N       int       `json:"n"`
	Run     string    `json:"run_id"`
	Session string    `json:"session_id"`
	Cause   string    `json:"cause"`
	Result  string    `json:"result"`
	Error   string    `json:"error,omitempty"`
	Output  string    `json:"output,omitempty"`
	Model   string    `json:"model,omitempty"`
	Created time.Time `json:"created_at"`
	Ended   time.Time `json:"ended_at,omitzero"`
}

// A Fault is a file that cannot be used.
type Fault struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func agentOf(l agents.Line) Agent {
	out := Agent{Name: l.Name, DisplayName: l.DisplayName, Description: l.Description, Schedule: l.Rule.String(), Enabled: l.Enabled, Timezone: l.Rule.Zone().String(),
		Output: l.Output, Tools: l.Tools, Model: l.Model, Trust: l.Trust.String(), Path: l.File, Next: l.Next.UTC()}
	if l.Next.IsZero() {
		out.Next = time.Time{}
	}
	if l.Last != nil {
		last := runOf(*l.Last)
		out.Last = &last
	}
	return out
}

func runOf(r agents.Run) Run {
	out := Run{Date: r.Date, N: r.N, Run: r.Run, Session: r.Session, Cause: r.Cause, Result: r.Result, Error: r.Error, Output: r.Output, Model: r.Model,
		Created: r.Created.UTC(), Ended: r.Ended}
	if out.Result == "" {
		out.Result = "running"
	}
	return out
}

// read returns the agents and faults for a caller with the scope admin.
func (a *API) read(r *http.Request) ([]Agent, []Fault, error) {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return nil, nil, err
	}
	lines, faults, err := a.o.Lists.List(r.Context())
	if err != nil {
		return nil, nil, err
	}
	list, bad := make([]Agent, len(lines)), make([]Fault, len(faults))
	for i, l := range lines {
		list[i] = agentOf(l)
	}
	for i, f := range faults {
		bad[i] = Fault{f.File, f.Line, f.Text}
	}
	return list, bad, nil
}

// scheduler serves GET /api/scheduler: what runs next.
func (a *API) scheduler(w http.ResponseWriter, r *http.Request) error {
	list, _, err := a.read(r)
	if err != nil {
		return err
	}
	type job struct {
		Agent string    `json:"agent"`
		Next  time.Time `json:"next_run"`
	}
	jobs := []job{}
	for _, x := range list {
		if !x.Next.IsZero() {
			jobs = append(jobs, job{x.Name, x.Next})
		}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"running": true, "jobs": jobs})
}

// list serves GET /api/daily/agents.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	list, faults, err := a.read(r)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"agents": list, "faults": faults})
}

// one serves GET /api/daily/agents/{name}.
func (a *API) one(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	l, err := a.o.Lists.Line(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, agentOf(l))
}

// run serves POST /api/daily/agents/{name}/run.
func (a *API) run(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	var date *string
	var force *bool
	if err := web.ReadFieldsInto(w, r, map[string]any{"date": &date, "force": &force}); err != nil {
		return err
	}
	day := ""
	if date != nil {
		day = *date
	}
	run, err := a.o.Starter.Start(r.Context(), r.PathValue("name"), day, force != nil && *force, p.Actor())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, runOf(run))
}

// history serves GET /api/daily/agents/{name}/history.
func (a *API) history(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	limit, err := web.QueryNumber(r.URL.Query(), "limit", 50, 1, 100)
	if err != nil {
		return web.FieldProblem(web.Invalid, "limit", core.TextOf(err))
	}
	name := r.PathValue("name")
	if err := agents.CheckName(name); err != nil {
		return err
	}
	runs, err := a.o.Lists.History(r.Context(), name, limit)
	if err != nil {
		return err
	}
	out := make([]Run, len(runs))
	for i, x := range runs {
		out[i] = runOf(x)
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"runs": out})
}
