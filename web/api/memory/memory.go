// Package memory serves the caller's corrections.
package memory

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
	"gatehouse/web"
	"gatehouse/web/auth"
)

const (
	maxBody  = 64 << 10
	maxQuery = 256 // bytes of q
)

// Options for New.
type Options struct {
	Store *memory.Store
}

// An API serves the routes of the memory.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/memory":             a.list,
		"POST /api/memory":            a.add,
		"PATCH /api/memory/{id}":      a.change,
		"DELETE /api/memory/{id}":     a.remove,
		"GET /api/memory/{id}/events": a.events,
		"POST /api/memory/confirm":    a.confirm,
	}
}

// A Correction is a memory.Correction as clients read it.
type Correction struct {
	ID         string    `json:"correction_id"`
	Number     int       `json:"number"`
	Type       string    `json:"type"`
	Scope      string    `json:"scope"`
	ScopeRef   string    `json:"scope_ref,omitempty"`
	Text       string    `json:"corrective_instruction"`
	Canonical  string    `json:"canonical_query"`
	About      string    `json:"about,omitempty"`
	Domain     string    `json:"domain"`
	Confidence float64   `json:"confidence"`
	Class      string    `json:"decay_class"`
	Pinned     bool      `json:"pinned"`
	Delta      int       `json:"score_delta"`
	Via        string    `json:"extracted_via"`
	Status     string    `json:"status"`
	Superseded string    `json:"superseded_by,omitempty"`
	Card       string    `json:"card,omitempty"`
	Conflicts  string    `json:"conflicts_with,omitempty"`
	Expires    time.Time `json:"expires_at,omitzero"`
	Uses       int       `json:"uses"`
	Emphasis   int       `json:"emphasis"`
	Used       time.Time `json:"used_at,omitzero"`
	Created    time.Time `json:"created_at"`
	Updated    time.Time `json:"updated_at"`
}

func correctionOf(c *memory.Correction) Correction {
	out := Correction{ID: c.ID, Number: c.Number, Type: string(c.Type), Scope: string(c.Scope), ScopeRef: c.ScopeRef, Text: c.Text, Canonical: c.Canonical, About: c.About, Domain: c.Domain,
		Confidence: c.Confidence, Class: string(c.Class), Pinned: c.Pinned, Delta: c.ScoreDelta, Via: c.Via, Status: string(c.Status), Superseded: c.Superseded, Card: string(c.Card),
		Conflicts: c.Conflicts, Expires: c.ExpiresAt, Uses: c.Uses, Emphasis: c.Emphasis, Used: c.UsedAt, Created: c.CreatedAt, Updated: c.UpdatedAt}
	if c.Status == memory.Superseded {
		out.Scope = "superseded"
	}
	return out
}

// list serves GET /api/memory.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	f, err := filter(r.URL.Query())
	if err != nil {
		return err
	}
	all, next, err := a.o.Store.List(r.Context(), p.User, f)
	if err != nil {
		return err
	}
	out := struct {
		Corrections []Correction `json:"corrections"`
		Next        int          `json:"next"`
	}{make([]Correction, len(all)), next}
	for i := range all {
		out.Corrections[i] = correctionOf(&all[i])
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

// filter returns what v asks for.
func filter(v url.Values) (f memory.Filter, err error) {
	f.Text = v.Get("q")
	if len(f.Text) > maxQuery {
		return f, web.FieldProblem(web.Invalid, "q", "q is over 256 bytes: use fewer words")
	}
	if f.Project = v.Get("project_id"); len(f.Project) > maxQuery {
		return f, web.FieldProblem(web.Invalid, "project_id", "project_id is no id of a project: GET /api/projects lists them")
	}
	switch status := v.Get("status"); status {
	case "", "active", "superseded", "deleted":
		f.Status = memory.Status(status)
	case "open":
		f.Cards = true
	default:
		return f, web.FieldProblem(web.Invalid, "status", "status must be active, superseded, deleted or open")
	}
	if f.After, err = web.QueryNumber(v, "after", 0, 0, 1_000_000_000); err != nil {
		return f, web.FieldProblem(web.Invalid, "after", core.TextOf(err))
	}
	if f.Limit, err = web.QueryNumber(v, "limit", 50, 1, 200); err != nil {
		return f, web.FieldProblem(web.Invalid, "limit", core.TextOf(err))
	}
	return f, nil
}

// body reads the JSON body's members into the targets by name, and warns of others.
func body(w http.ResponseWriter, r *http.Request, into map[string]any) error {
	raw, err := web.ReadJSON(w, r, maxBody)
	if err != nil {
		return err
	}
	given, err := web.FieldsOf(raw)
	if err != nil {
		return err
	}
	for name, to := range into {
		value, there := given[name]
		delete(given, name)
		if there && json.Unmarshal(value, to) != nil {
			return web.FieldProblem(web.Invalid, name, name+" has another type: see the description of the API")
		}
	}
	web.WarnUnknown(w, given)
	return nil
}

// user returns the caller, whose memory a request is about; keyless requests from this machine
// are no user's.
func user(r *http.Request, scopes ...string) (auth.Principal, error) {
	p, err := auth.Require(r, scopes...)
	if err == nil && p.User <= 0 {
		err = core.Errorf(core.Denied, "the memory is kept for each user, and a request without a key is no user's: use an API key")
	}
	return p, err
}

// add serves POST /api/memory.
func (a *API) add(w http.ResponseWriter, r *http.Request) error {
	p, err := user(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	var text, kind, scope, ref string
	if err := body(w, r, map[string]any{"text": &text, "type": &kind, "scope": &scope, "scope_ref": &ref}); err != nil {
		return err
	}
	l, err := a.o.Store.Add(r.Context(), p.User, memory.Draft{Text: text, Type: detect.Type(kind), Scope: detect.Scope(scope), Ref: ref}, p.Actor())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, correctionOf(&l.Correction))
}

// change serves PATCH /api/memory/{id}.
func (a *API) change(w http.ResponseWriter, r *http.Request) error {
	p, err := user(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	var ch memory.Change
	var status *string
	if err := body(w, r, map[string]any{"text": &ch.Text, "type": &ch.Type, "pinned": &ch.Pinned, "scope": &ch.Scope, "status": &status}); err != nil {
		return err
	}
	id := r.PathValue("id")
	if status != nil {
		if *status != string(memory.Active) {
			return web.FieldProblem(web.Invalid, "status", "status can only be set to active, which brings back what was deleted or replaced")
		}
		c, err := a.o.Store.Restore(r.Context(), p.User, id, p.Actor())
		if err != nil {
			return err
		}
		if ch == (memory.Change{}) {
			return web.WriteJSON(w, http.StatusOK, correctionOf(&c))
		}
	}
	c, err := a.o.Store.Update(r.Context(), p.User, id, ch, p.Actor())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, correctionOf(&c))
}

// remove serves DELETE /api/memory/{id}.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	p, err := user(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	if _, err := a.o.Store.Delete(r.Context(), p.User, r.PathValue("id"), p.Actor()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// An Event is a memory.Event as clients read it.
type Event struct {
	Kind    string    `json:"kind"`
	Run     string    `json:"run_id,omitempty"`
	Session string    `json:"session_id,omitempty"`
	Model   string    `json:"model,omitempty"`
	At      time.Time `json:"at"`
}

// events serves GET /api/memory/{id}/events.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	p, err := user(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	all, err := a.o.Store.Events(r.Context(), p.User, r.PathValue("id"))
	if err != nil {
		return err
	}
	out := struct {
		Events []Event `json:"events"`
	}{make([]Event, len(all))}
	for i, e := range all {
		out.Events[i] = Event(e)
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

// confirm serves POST /api/memory/confirm.
func (a *API) confirm(w http.ResponseWriter, r *http.Request) error {
	p, err := user(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	var id, choice string
	if err := body(w, r, map[string]any{"correction_id": &id, "choice": &choice}); err != nil {
		return err
	}
	if id == "" {
		return web.FieldProblem(web.Invalid, "correction_id", "correction_id is missing: GET /api/memory?status=open lists open questions")
	}
	l, err := a.o.Store.Decide(r.Context(), p.User, id, choice, p.Actor())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, correctionOf(&l.Correction))
}
