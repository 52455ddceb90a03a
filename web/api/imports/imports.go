// Package imports serves the import of conversations from other systems: it takes a file or a path, and
// reports how far the import is.
package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/web"
	"gatehouse/web/api/stream"
	"gatehouse/web/auth"
	"gatehouse/web/importing"
)

const (
	maxBody = 64 << 10 // bytes of a body without a file
	maxWait = 30       // seconds that a state may be waited for
)

type (
	// Imports start, follow and stop imports (tasks.Tasks).
	Imports interface {
		Start(ctx context.Context, o report.Order, t foreign.Terms, by core.Actor) (string, error)
		StartFile(ctx context.Context, f *os.File, name string, size int64, o report.Order, t foreign.Terms, by core.Actor) (string, error)
		Next(ctx context.Context, id string, patience time.Duration) (report.State, error)
		Stop(ctx context.Context, id string, by core.Actor) error
	}
	// Reports are what imports have done.
	Reports interface {
		State(id string) (report.State, error)
		List() []report.State
		Entries(id string) (io.ReadSeekCloser, time.Time, error)
	}
)

// Options for New. All are needed.
type Options struct {
	Imports Imports
	Reports Reports
	Temp    importing.Temp
	Intake  *importing.Intake
	Streams *stream.Streams
}

// An API serves the routes of imports.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"POST /api/import":             a.start,
		"GET /api/import":              a.list,
		"GET /api/import/{id}":         a.state,
		"DELETE /api/import/{id}":      a.stop,
		"GET /api/import/{id}/stream":  a.stream,
		"GET /api/import/{id}/entries": a.entries,
	}
}

// start serves POST /api/import: a form with a file, or JSON with a path of the gateway's machine.
func (a *API) start(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var id string
	switch {
	case err == nil && media == "multipart/form-data":
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(importing.UploadTime)) // at worst the usual one holds
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(importing.UploadTime + time.Minute))
		id, err = a.upload(w, multipart.NewReader(http.MaxBytesReader(w, r.Body, importing.MaxUpload+maxBody), params["boundary"]), r, p)
	case err == nil && media == "application/json":
		id, err = a.path(w, r, p)
	default:
		err = web.Refuse(web.UnsupportedMedia, "the body must be multipart/form-data with a file, or application/json with a path")
	}
	if err != nil {
		return err
	}
	s, err := a.o.Reports.State(id)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/import/"+id)
	return web.WriteJSON(w, http.StatusAccepted, s)
}

// path starts an import from the machine's own disk.
func (a *API) path(w http.ResponseWriter, r *http.Request, p auth.Principal) (string, error) {
	raw, err := web.ReadJSON(w, r, maxBody)
	if err != nil {
		return "", err
	}
	given, err := web.FieldsOf(raw)
	if err != nil {
		return "", err
	}
	var o report.Order
	for _, f := range []struct {
		name string
		to   any
		what string
	}{{"path", &o.Path, "a path"}, {"dry_run", &o.DryRun, "true or false"}, {"archive", &o.Archive, "true or false"}, {"again", &o.Again, "true or false"}} {
		if v, ok := given[f.name]; ok && json.Unmarshal(v, f.to) != nil {
			return "", web.FieldProblem(web.Invalid, f.name, f.name+" must be "+f.what)
		}
	}
	if !filepath.IsAbs(o.Path) || len(o.Path) > 4096 {
		return "", web.FieldProblem(web.Invalid, "path", "path must be the absolute path of a file or folder on the gateway's machine; or send the file as a form")
	}
	if err := importing.MayName(p); err != nil {
		return "", err
	}
	if err := a.o.Intake.Free(); err != nil {
		return "", err
	}
	return a.o.Imports.Start(r.Context(), o, importing.Terms(p), p.Actor())
}

// upload takes a form whose fields come in any order.
func (a *API) upload(w http.ResponseWriter, form *multipart.Reader, r *http.Request, p auth.Principal) (id string, err error) {
	u, err := a.o.Intake.Begin(w, r)
	if err != nil {
		return "", err
	}
	defer u.Close()
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", web.BodyFault(err, "the form cannot be read")
		}
		if err := u.Take(part, a.o.Temp); err != nil {
			return "", err
		}
	}
	return u.Start(r.Context(), a.o.Imports, p)
}

// list serves GET /api/import.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"imports": a.o.Reports.List()})
}

// state serves GET /api/import/{id}; with wait it answers when the import has changed.
func (a *API) state(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	wait, err := web.QueryNumber(r.URL.Query(), "wait", 0, 0, maxWait)
	if err != nil {
		return web.FieldProblem(web.Invalid, "wait", core.TextOf(err))
	}
	var s report.State
	if wait > 0 {
		s, err = a.o.Imports.Next(r.Context(), r.PathValue("id"), time.Duration(wait)*time.Second)
	} else {
		s, err = a.o.Reports.State(r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, s)
}

// stop serves DELETE /api/import/{id}.
func (a *API) stop(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	if err := a.o.Imports.Stop(r.Context(), r.PathValue("id"), p.Actor()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// stream serves GET /api/import/{id}/stream: an event for each change, the last one is of the end.
func (a *API) stream(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	state, err := a.o.Reports.State(r.PathValue("id"))
	if err != nil {
		return err
	}
	release, err := a.o.Streams.Take(p.Caller())
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer a.o.Streams.Watch(auth.Narrow(r, auth.ScopeAdmin), stop)() // before the answer begins: who has read of it may count on it
	s, err := a.o.Streams.Start(w, r, true)
	if err != nil {
		return err
	}
	defer s.Close()
	defer context.AfterFunc(s.Context(), stop)()
	for {
		data, err := json.Marshal(state)
		if err != nil {
			return fmt.Errorf("import event: %w", err)
		}
		if s.Send("", data) != nil || state.State != report.Running {
			return nil
		}
		if state, err = a.o.Imports.Next(ctx, state.ID, web.Heartbeat); err != nil {
			return nil // the reader is gone, or the import is forgotten
		}
	}
}

// entries serves GET /api/import/{id}/entries: what became of each conversation, as lines of JSON.
func (a *API) entries(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	return importing.WriteEntries(w, r, a.o.Reports, r.PathValue("id"))
}
