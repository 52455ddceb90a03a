package sessions

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// A Row is a session as lists show it.
type Row struct {
	ID               string     `json:"id"`
	Title            string     `json:"title"`
	Module           string     `json:"module"`
	Source           string     `json:"source"`
	WorkingDirectory string     `json:"working_directory,omitempty"`
	Model            string     `json:"model"`                  // that answered last
	ChosenModel      string     `json:"chosen_model,omitempty"` // for the turns to come
	MessageCount     int        `json:"message_count"`
	Archived         bool       `json:"archived"`
	CreatedAt        time.Time  `json:"created_at"`
	LastAccessed     time.Time  `json:"last_accessed"`
	ContinuedFrom    string     `json:"continued_from,omitempty"`
	AgentType        string     `json:"agent_type,omitempty"`
	Workspace        string     `json:"workspace,omitempty"`
	Project          string     `json:"project_id,omitempty"`
	ParaID           string     `json:"para_id,omitempty"`
	User             int64      `json:"user_id"`
	Trust            core.Trust `json:"trust_level"`
	Hit              *Hit       `json:"hit,omitempty"` // of a search
}

// A Hit is where a session has what was searched for.
type Hit struct {
	In      string    `json:"in"` // title, tag, text
	Excerpt string    `json:"excerpt"`
	Message string    `json:"message_id,omitempty"` // of text
	Role    string    `json:"role,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// A Query is what a list asks for: newest first by last access.
type Query struct {
	User      int64 // the owner
	Everybody bool
	Archived  *bool // nil: both
	Source    string
	Module    string
	AgentType string
	Project   string
	Tag       string
	Context   string
	Search    string // terms of title, tags or messages; the newest hit first
	Limit     int    // 1 to 200
	Offset    int    // 0 with a cursor
	Cursor    string // opaque: the next of the page before
}

// list serves GET /api/chat.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	q, err := sessionQuery(r.URL.Query())
	if err != nil {
		return err
	}
	return a.listed(w, r, p, q)
}

// count serves GET /api/chat/count.
func (a *API) count(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	v := r.URL.Query()
	for _, name := range []string{"search", "cursor", "offset", "limit"} {
		if v.Has(name) {
			return core.Errorf(core.Invalid, "%s does not go with counting", name)
		}
	}
	q, err := sessionQuery(v)
	if err != nil {
		return err
	}
	q.User, q.Everybody = p.User, p.ReadsEveryone()
	n, err := a.Lists.Count(r.Context(), q)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]int{"count": n})
}

// listed answers with one page of what p may see of q.
func (a *API) listed(w http.ResponseWriter, r *http.Request, p auth.Principal, q Query) error {
	q.User, q.Everybody = p.User, p.ReadsEveryone()
	rows, next, err := a.Lists.List(r.Context(), q)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = []Row{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"sessions": rows, "next_cursor": next})
}

func sessionQuery(v url.Values) (q Query, err error) {
	if q.Limit, err = web.QueryNumber(v, "limit", 50, 1, 200); err != nil {
		return q, err
	}
	if q.Offset, err = web.QueryNumber(v, "offset", 0, 0, 100_000); err != nil {
		return q, err
	}
	q.Cursor = v.Get("cursor")
	if q.Cursor != "" && v.Has("offset") {
		return q, core.Errorf(core.Invalid, "give cursor or offset, not both")
	}
	if v.Get("search") != "" && q.Offset > 0 {
		return q, core.Errorf(core.Invalid, "a search is paged by cursor, not by offset")
	}
	if v.Has("archived") {
		b, err := strconv.ParseBool(v.Get("archived"))
		if err != nil {
			return q, core.Errorf(core.Invalid, "archived must be true or false")
		}
		q.Archived = &b
	}
	for _, f := range []struct {
		name string
		dest *string
		most int
	}{
		{"source", &q.Source, 64}, {"module", &q.Module, 64}, {"agent_type", &q.AgentType, 128}, {"project_id", &q.Project, 64},
		{"tag", &q.Tag, 128}, {"search", &q.Search, 256}, {"cursor", &q.Cursor, 512},
	} {
		if *f.dest = v.Get(f.name); len(*f.dest) > f.most {
			return q, core.Errorf(core.Invalid, "%s is over %d bytes", f.name, f.most)
		}
	}
	return q, nil
}
