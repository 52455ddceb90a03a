// Package passages serves the passages of one content of the index: to read them, to add
// some in fields of one's own, and to have the content indexed again.
package passages

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// maxBody is the largest body: the chunks of one call, in JSON.
const maxBody = 1 << 20

// An Index keeps passages (document.Store).
type Index interface {
	// Path returns where the content's file is in the vault; core.NotFound.
	Path(ctx context.Context, content string) (string, error)
	Chunks(ctx context.Context, content, field, after string, limit int) ([]document.Stored, error)
	Add(ctx context.Context, content string, list []document.Stored) error
	Purge(ctx context.Context, content string) error
}

// Options for New. All are needed.
type Options struct {
	Index   Index
	MayRead func(trust core.Trust, user int64, name string) bool // files of the vault
	Refill  func()                                               // has what was purged indexed again soon
	// Did adds an entry to the audit log.
	Did func(ctx context.Context, by core.Actor, action, subject string) error
}

// An API serves the routes.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	const at = " /api/index/{content_id}/chunks"
	return map[string]web.Handler{"GET" + at: a.list, "PUT" + at: a.put, "DELETE" + at: a.delete}
}

// A Chunk is a document.Stored as clients read it.
type Chunk struct {
	ID       string    `json:"id"`
	Field    string    `json:"field"`
	Index    int       `json:"chunk_index"`
	Text     string    `json:"text"`
	Line     int       `json:"line"`
	Embedded bool      `json:"embedded"`
	Created  time.Time `json:"created_at"`
}

// A Page is the answer to a list.
type Page struct {
	Content string  `json:"content_id"`
	Path    string  `json:"path"`
	Chunks  []Chunk `json:"chunks"`
	Next    string  `json:"next"` // the cursor of the next page; "" on the last
}

// content returns the content that a request is about, for an admin whose trust reads
// its file; for others there is none.
func (a *API) content(r *http.Request) (p auth.Principal, id, path string, err error) {
	if p, err = auth.Require(r, auth.ScopeAdmin); err != nil {
		return p, "", "", err
	}
	if id = r.PathValue("content_id"); !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		return p, "", "", core.Errorf(core.NotFound, "the index has no such content")
	}
	if path, err = a.o.Index.Path(r.Context(), id); err == nil && !a.o.MayRead(p.Trust, p.User, path) {
		err = core.Errorf(core.NotFound, "the index has no content %q", id)
	}
	return p, id, path, err
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	_, id, path, err := a.content(r)
	if err != nil {
		return err
	}
	v := r.URL.Query()
	limit, err := web.QueryNumber(v, "limit", document.MaxChunks, 1, document.MaxChunks)
	if err != nil {
		return web.FieldProblem(web.Invalid, "limit", core.TextOf(err))
	}
	for _, name := range []string{"field", "cursor"} {
		if s := v.Get(name); !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > 256 {
			return web.FieldProblem(web.Invalid, name, name+" must be at most 256 bytes of UTF-8")
		}
	}
	list, err := a.o.Index.Chunks(r.Context(), id, v.Get("field"), v.Get("cursor"), limit)
	if core.KindOf(err) == core.Invalid {
		return web.FieldProblem(web.Invalid, "cursor", core.TextOf(err))
	}
	if err != nil {
		return err
	}
	out := Page{Content: id, Path: path, Chunks: make([]Chunk, len(list))}
	for i, c := range list {
		out.Chunks[i] = Chunk{c.ID, c.Field, c.Index, c.Text, c.Line, c.Embedded, core.TimeOf(c.Created)}
	}
	if len(list) == limit {
		out.Next = list[limit-1].ID
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

func (a *API) put(w http.ResponseWriter, r *http.Request) error {
	p, id, _, err := a.content(r)
	if err != nil {
		return err
	}
	raw, err := web.ReadJSON(w, r, maxBody)
	if err != nil {
		return err
	}
	var in struct {
		Chunks []struct {
			Field string `json:"field"`
			Index int    `json:"chunk_index"`
			Text  string `json:"text"`
		} `json:"chunks"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return web.BodyFault(err, "the body must be like {\"chunks\":[{\"field\":\"summary\",\"chunk_index\":0,\"text\":\"…\"}]}")
	}
	list := make([]document.Stored, len(in.Chunks))
	for i, c := range in.Chunks {
		if strings.ContainsRune(c.Text, 0) {
			return web.FieldProblem(web.Invalid, "chunks", "a text has a null character")
		}
		list[i] = document.Stored{Field: c.Field, Index: c.Index, Text: c.Text}
	}
	err = a.o.Index.Add(r.Context(), id, list)
	if core.KindOf(err) == core.Invalid {
		return web.FieldProblem(web.Invalid, "chunks", core.TextOf(err))
	}
	if err == nil {
		err = a.o.Did(r.Context(), p.Actor(), "index.add", id)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) delete(w http.ResponseWriter, r *http.Request) error {
	p, id, _, err := a.content(r)
	if err == nil {
		err = a.o.Index.Purge(r.Context(), id)
	}
	if err == nil {
		err = a.o.Did(r.Context(), p.Actor(), "index.delete", id)
	}
	if err != nil {
		return err
	}
	a.o.Refill()
	w.WriteHeader(http.StatusNoContent)
	return nil
}
