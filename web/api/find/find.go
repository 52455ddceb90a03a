// Package find serves the search over conversations, documents and journals.
package find

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// Limits of a request's parameters.
const (
	maxTags   = 8
	maxName   = 128  // bytes of a tag
	maxFolder = 1024 // bytes
	maxCursor = 1024 // bytes
	maxID     = 64   // bytes of a project's id
)

// A Finder searches conversations and documents (search.Finder).
type Finder interface {
	Search(ctx context.Context, q search.Query, r search.Reader) (search.Page, error)
}

// An API serves the route of the search.
type API struct{ finder Finder }

// New returns an API.
func New(f Finder) *API { return &API{f} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{"GET /api/search": a.search}
}

// A Hit is a search.Hit as clients read it.
type Hit struct {
	Type    string    `json:"type"`
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Path    string    `json:"path,omitempty"`
	Line    int       `json:"line,omitempty"`
	Session string    `json:"session_id,omitempty"`
	Message string    `json:"message_id,omitempty"`
	Role    string    `json:"role,omitempty"`
	In      string    `json:"in,omitempty"`
	Excerpt string    `json:"excerpt"`
	Marks   [][2]int  `json:"marks"`
	At      time.Time `json:"at,omitzero"`
	Score   float64   `json:"score"`
}

// A Page is the answer.
type Page struct {
	Hits []Hit  `json:"hits"`
	Next string `json:"next"` // the cursor of the next page; "" on the last
}

// search serves GET /api/search: the conversations that GET /api/chat lists (the caller's
// own, with the scopes admin and read those of all users), and the files that the caller's
// trust reads.
func (a *API) search(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	q, err := query(r.URL.Query())
	if err != nil {
		return err
	}
	found, err := a.finder.Search(r.Context(), q, search.Reader{User: p.User, Trust: p.Trust, Everyone: p.ReadsEveryone(), AnyTrust: true})
	if core.KindOf(err) == core.Invalid { // all else was checked
		field := "q"
		if q.Cursor != "" {
			field = "cursor"
		}
		return web.FieldProblem(web.Invalid, field, core.TextOf(err))
	}
	if err != nil {
		return err
	}
	out := Page{Hits: make([]Hit, len(found.Hits)), Next: found.Next}
	for i, h := range found.Hits {
		out.Hits[i] = hitOf(h)
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

func hitOf(h search.Hit) Hit {
	out := Hit{
		Type: h.Type, ID: h.ID, Title: h.Title, Path: h.Path, Line: h.Line, Message: h.Message, Role: h.Role, In: h.In,
		Excerpt: h.Excerpt, Marks: h.Marks, At: h.At.UTC(), Score: h.Score,
	}
	if h.Type == search.Session {
		out.Session = h.ID
	}
	if out.Marks == nil {
		out.Marks = [][2]int{}
	}
	return out
}

// query returns the search that v asks for, or the problem of the first parameter
// that is not valid.
func query(v url.Values) (q search.Query, err error) {
	q = search.Query{Text: v.Get("q"), Types: v["type"], Tags: v["tag"], Folder: v.Get("folder"), Project: v.Get("project"), Cursor: v.Get("cursor")}
	for _, c := range []struct {
		bad          bool
		name, detail string
	}{
		{strings.TrimSpace(q.Text) == "", "q", "q is missing: add what to look for, such as q=green+tea"},
		{!isText(q.Text), "q", "q is not UTF-8 without null characters: encode it as UTF-8, then with percent signs"},
		{utf8.RuneCountInString(q.Text) > search.MaxText, "q", "q is over 256 characters: use fewer words"},
		{len(q.Types) > 3, "type", "type is given more than three times: there are session, document and journal"},
		{len(q.Tags) > maxTags, "tag", "tag is given more than 8 times: use fewer"},
		{len(q.Folder) > maxFolder || !isText(q.Folder), "folder", "folder must be a path in the vault of at most 1024 bytes, such as Notes/Garden"},
		{v.Has("folder") && strings.Trim(q.Folder, "/. ") == "", "folder", "folder names no folder: leave it out to search the whole vault"},
		{len(q.Project) > maxID || !isText(q.Project) || v.Has("project") && q.Project == "", "project", "project must be the id of a project (GET /api/projects lists them)"},
		{len(q.Cursor) > maxCursor, "cursor", "the cursor is not of this search: begin again without one"},
	} {
		if c.bad {
			return q, web.FieldProblem(web.Invalid, c.name, c.detail)
		}
	}
	for _, t := range q.Types {
		if t != search.Session && t != search.Document && t != search.Journal {
			return q, web.FieldProblem(web.Invalid, "type", "type must be session, document or journal")
		}
	}
	for i, t := range q.Tags {
		if len(t) > maxName || !isText(t) || strings.Trim(t, "# ") == "" {
			return q, web.FieldProblem(web.Invalid, "tag", "tag must be 1 to 128 bytes, such as tag=garden")
		}
		q.Tags[i] = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(t), "#")) // as in q
	}
	return bounds(v, q)
}

// isText reports whether every database can be asked for s.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// bounds adds times and limit to q.
func bounds(v url.Values, q search.Query) (_ search.Query, err error) {
	if q.After, err = web.QueryTime(v, "after"); err != nil {
		return q, web.FieldProblem(web.Invalid, "after", core.TextOf(err))
	}
	if q.Before, err = web.QueryTime(v, "before"); err != nil {
		return q, web.FieldProblem(web.Invalid, "before", core.TextOf(err))
	}
	if !q.Before.IsZero() && !q.After.Before(q.Before) {
		return q, web.FieldProblem(web.Invalid, "before", "before must be later than after")
	}
	if q.Limit, err = web.QueryNumber(v, "limit", search.DefaultLimit, 1, search.MaxLimit); err != nil {
		return q, web.FieldProblem(web.Invalid, "limit", core.TextOf(err))
	}
	return q, nil
}
