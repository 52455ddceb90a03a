// Package sync serves the sync of the vault with devices: lists of files with their
// hashes, and the files themselves, streamed both ways.
package sync

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
	"gatehouse/web"
	"gatehouse/web/auth"
)

const (
	maxJSON    = 16 << 20        // bytes of a body, or an answer, of JSON
	maxMeta    = 64 << 10        // bytes of the description of a file
	maxOrder   = 4 << 20         // bytes of a body without files
	maxAtOnce  = 4               // requests of a key
	perFile    = 5 * time.Minute // for a file to arrive or to be taken, or perStep of it
	maxWaiting = 2 * time.Minute // for a list of a large vault
)

// Files are the vault's files (vaultsync.Store).
type Files interface {
	List(ctx context.Context, a vaultsync.Area, q vaultsync.Query) (*vaultsync.Listing, error)
	Push(ctx context.Context, a vaultsync.Area, in vaultsync.Sent, body io.Reader) (wire.Done, error)
	Open(ctx context.Context, a vaultsync.Area, root, path string) (vaultsync.Served, error)
	Delete(ctx context.Context, a vaultsync.Area, root, path, base string) (wire.Done, error)
}

// Options for New. All are needed.
type Options struct {
	Files Files
	Clock core.Clock
	// May reports whether a user at this trust may read a file of the vault, or write it.
	May func(trust core.Trust, user int64, name string, write bool) bool
	// Did notes in the audit log what a device did.
	Did func(ctx context.Context, by core.Actor, device, action string, done []wire.Done) error
	// Watch calls gone when the caller of r loses access, until forget is called.
	Watch func(r *http.Request, gone func()) (forget func())
}

// An API serves the routes of the sync.
type API struct {
	o     Options
	slots *web.Slots // requests that are open, by key
	lists *pace
	rest  *pace
}

// New returns an API.
func New(o Options) *API {
	return &API{o, web.NewSlots(maxAtOnce), newPace(o.Clock, listsPerSecond, listsAtFirst), newPace(o.Clock, requestsPerSecond, requestsAtFirst)}
}

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/sync/manifest": a.limited(a.manifest),
		"GET /api/sync/changes":  a.limited(a.changes),
		"POST /api/sync/push":    a.limited(a.push),
		"POST /api/sync/pull":    a.limited(a.pull),
		"DELETE /api/sync/files": a.limited(a.remove),
	}
}

// A handler serves a request of a caller who may sync.
type handler func(w http.ResponseWriter, r *http.Request, c caller) error

// A caller is who syncs what.
type caller struct {
	vaultsync.Area
	by   core.Actor
	line *line
}

// limited returns h for callers with the scope, with a limit of requests at once for each
// key.
func (a *API) limited(h handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		p, err := auth.Require(r, auth.ScopeSync)
		if err != nil {
			return err
		}
		key := p.Key
		if key == "" {
			key = "session"
		}
		if err := a.of(r).take(key); err != nil {
			return err
		}
		release, ok := a.slots.Take(key)
		if !ok {
			return &web.Problem{Fault: web.TooManyRequests, RetryAfter: web.RetrySoon,
				Detail: fmt.Sprintf("this key has %d sync requests open already: wait for one to end", maxAtOnce)}
		}
		defer release()
		l := newLine(w)
		defer l.end()
		defer a.o.Watch(auth.Narrow(r, auth.ScopeSync), l.cut)()
		if err := l.allow(maxWaiting); err != nil {
			return err
		}
		return h(w, r, caller{vaultsync.Area{User: p.User, Trust: p.Trust, May: a.o.May}, p.Actor(), l})
	}
}

// manifest serves GET /api/sync/manifest.
func (a *API) manifest(w http.ResponseWriter, r *http.Request, c caller) error {
	return a.list(w, r, c, "", "")
}

// changes serves GET /api/sync/changes.
func (a *API) changes(w http.ResponseWriter, r *http.Request, c caller) error {
	v := r.URL.Query()
	return a.list(w, r, c, v.Get("since"), v.Get("epoch"))
}

func (a *API) list(w http.ResponseWriter, r *http.Request, c caller, since, epoch string) error {
	v := r.URL.Query()
	q := vaultsync.Query{Root: v.Get("root"), Pattern: v.Get("pattern"), Date: v.Get("date"), Since: since, Epoch: epoch}
	switch v.Get("include_binary") {
	case "", "false":
	case "true":
		q.Binary = true
	default:
		return web.FieldProblem(web.Invalid, "include_binary", "include_binary must be true or false")
	}
	l, err := a.o.Files.List(r.Context(), c.Area, q)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.line.allow(maxWaiting); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.FormatInt(l.Size(), 10))
	_, _ = io.Copy(w, l) // the client may be gone
	return nil
}

// An order is a body of JSON of a deletion: one file, or several.
type order struct {
	Root     string      `json:"root"`
	Device   string      `json:"device"`
	Path     string      `json:"path"`
	BaseHash string      `json:"base_hash"`
	Files    []wire.Meta `json:"files"`
}

// remove serves DELETE /api/sync/files.
func (a *API) remove(w http.ResponseWriter, r *http.Request, c caller) error {
	var o order
	if err := read(w, r, maxOrder, &o); err != nil {
		return err
	}
	if o.Path != "" {
		o.Files = append(o.Files, wire.Meta{Path: o.Path, BaseHash: o.BaseHash})
	}
	if err := counted(len(o.Files)); err != nil {
		return err
	}
	out := newResult()
	for _, f := range o.Files {
		if err := c.line.open(); err != nil {
			return a.interrupted(r, c, o.Device, "sync.delete", out, err)
		}
		done, err := a.o.Files.Delete(r.Context(), c.Area, o.Root, f.Path, f.BaseHash)
		if err := out.add(f.Path, done, err); err != nil {
			return a.interrupted(r, c, o.Device, "sync.delete", out, err)
		}
	}
	return a.answer(w, r, c, o.Device, "sync.delete", out)
}

// counted refuses a request for no or too many files.
func counted(n int) error {
	if n == 0 || n > wire.MaxBatch {
		return web.FieldProblem(web.Invalid, "files", "name between 1 and 1000 files")
	}
	return nil
}

// read decodes a body of JSON.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	raw, err := web.ReadJSON(w, r, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return web.Refuse(web.Invalid, "the body is no object with the fields of the documentation")
	}
	return nil
}

// A result is a wire.Result that grows.
type result struct{ wire.Result }

func newResult() *result {
	return &result{wire.Result{Files: []wire.Done{}, Errors: []string{}}}
}

// add adds what became of a file. An error that is not for its reader ends the request.
func (o *result) add(path string, done wire.Done, err error) error {
	if err != nil {
		if core.KindOf(err) == core.Other {
			return err
		}
		o.Errors = append(o.Errors, core.CutRunes(path, 200)+": "+core.TextOf(err))
		return nil
	}
	if done.Outcome == wire.Deleted {
		o.Deleted++
	} else if done.Outcome != wire.Kept {
		o.Pushed++
	}
	o.Files = append(o.Files, done)
	return nil
}

// answer notes what was done, and answers with it.
func (a *API) answer(w http.ResponseWriter, r *http.Request, c caller, device, action string, out *result) error {
	if len(out.Files) > 0 {
		if err := a.o.Did(context.WithoutCancel(r.Context()), c.by, device, action, out.Files); err != nil {
			return err
		}
	}
	return web.WriteJSON(w, http.StatusOK, out.Result)
}
