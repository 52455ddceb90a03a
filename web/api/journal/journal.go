// Package journal serves the caller's journal: days and their entries.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// maxBody limits a body in bytes: an entry's text, escaped.
const maxBody = 1 << 20

// Options for New. All are needed.
type Options struct {
	Store *journal.Store
	// May reports whether a user at this trust may read a file of the vault, or write it.
	May func(trust core.Trust, user int64, name string, write bool) bool
	// Now returns the time in the user's time zone.
	Now func(ctx context.Context, user int64) (time.Time, error)
}

// An API serves the routes of the journal.
type API struct{ o Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/journal/{date}":          a.day,
		"POST /api/journal/{date}":         a.add,
		"GET /api/journal/entries/{id}":    a.entry,
		"PATCH /api/journal/entries/{id}":  a.change,
		"DELETE /api/journal/entries/{id}": a.remove,
	}
}

// An Entry is a journal.Entry as clients read it.
type Entry struct {
	ID      string  `json:"id"`
	Date    string  `json:"date"`
	Time    string  `json:"time"`
	Title   string  `json:"title,omitempty"`
	Text    string  `json:"text"`
	Images  []Image `json:"images"`
	Audio   []Audio `json:"audio"`
	Damaged bool    `json:"damaged,omitempty"`
	Version string  `json:"version"`
}

// An Image is a picture of an entry; the path is relative to the day's file.
type Image struct {
	Alt  string `json:"alt"`
	Path string `json:"path"`
}

// An Audio is a recording of an entry; the path is relative to the day's file.
type Audio struct {
	Duration string `json:"duration"`
	Path     string `json:"path"`
}

// A Day is a journal.Day as clients read it.
type Day struct {
	Date    string  `json:"date"`
	Path    string  `json:"path"`
	Head    string  `json:"head,omitempty"`
	Entries []Entry `json:"entries"`
}

func entryOf(e journal.Entry) Entry {
	out := Entry{ID: e.ID, Date: e.Date, Time: e.Time, Title: e.Title, Text: e.Text, Images: []Image{}, Audio: []Audio{}, Damaged: e.Damaged, Version: e.Version}
	for _, i := range e.Images {
		out.Images = append(out.Images, Image(i))
	}
	for _, x := range e.Audio {
		out.Audio = append(out.Audio, Audio(x))
	}
	return out
}

// allowed returns the caller, if the key's scopes and trust reach the journal's file of a
// date, "" for any.
func (a *API) allowed(r *http.Request, date string, write bool) (auth.Principal, error) {
	scopes := []string{auth.ScopeRead, auth.ScopeChat}
	if write {
		scopes = []string{auth.ScopeChat}
	}
	p, err := auth.Require(r, scopes...)
	if err != nil {
		return p, err
	}
	if err := journal.CheckDate(date); err != nil {
		return p, web.FieldProblem(web.Invalid, "date", core.TextOf(err))
	}
	name, err := journal.PathOf(p.User, date)
	if err == nil && !a.o.May(p.Trust, p.User, name, write) {
		err = core.Errorf(core.Denied, "the journal is not open at this key's trust level")
	}
	return p, err
}

// day serves GET /api/journal/{date}.
func (a *API) day(w http.ResponseWriter, r *http.Request) error {
	p, err := a.allowed(r, r.PathValue("date"), false)
	if err != nil {
		return err
	}
	d, err := a.o.Store.Day(r.Context(), p.User, r.PathValue("date"))
	if err != nil {
		return err
	}
	out := Day{Date: d.Date, Path: d.Path, Head: d.Head, Entries: make([]Entry, len(d.Entries))}
	for i, e := range d.Entries {
		out.Entries[i] = entryOf(e)
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

// add serves POST /api/journal/{date}.
func (a *API) add(w http.ResponseWriter, r *http.Request) error {
	p, err := a.allowed(r, r.PathValue("date"), true)
	if err != nil {
		return err
	}
	given, err := read(w, r, "text", "time")
	if err != nil {
		return err
	}
	at, err := a.o.Now(r.Context(), p.User)
	if err != nil {
		return err
	}
	if given["time"] != nil {
		t, err := time.Parse("15:04", *given["time"])
		if err != nil {
			return web.FieldProblem(web.Invalid, "time", "time must be a time of day such as 10:30 or 22:15")
		}
		at = t
	}
	if given["text"] == nil {
		return web.FieldProblem(web.Invalid, "text", "text is missing: it is what the entry says")
	}
	e, err := a.o.Store.Append(r.Context(), p.User, journal.Draft{Date: r.PathValue("date"), At: at, Text: *given["text"]}, p.Actor())
	if err != nil {
		return err
	}
	return write(w, http.StatusCreated, e)
}

// entry serves GET /api/journal/entries/{id}.
func (a *API) entry(w http.ResponseWriter, r *http.Request) error {
	_, e, err := a.found(r, false)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, e)
}

// found returns the caller and the entry in the address, which is theirs.
func (a *API) found(r *http.Request, write bool) (p auth.Principal, e journal.Entry, err error) {
	scopes := []string{auth.ScopeRead, auth.ScopeChat}
	if write {
		scopes = []string{auth.ScopeChat}
	}
	if p, err = auth.Require(r, scopes...); err != nil {
		return p, e, err
	}
	if e, err = a.o.Store.Entry(r.Context(), p.User, r.PathValue("id")); err != nil {
		return p, e, err
	}
	_, err = a.allowed(r, e.Date, write)
	return p, e, err
}

// change serves PATCH /api/journal/entries/{id}.
func (a *API) change(w http.ResponseWriter, r *http.Request) error {
	p, e, err := a.found(r, true)
	if err != nil {
		return err
	}
	version, err := matching(r, e)
	if err != nil {
		return err
	}
	given, err := read(w, r, "text")
	if err != nil {
		return err
	}
	e, err = a.o.Store.Edit(r.Context(), p.User, e.ID, version, journal.Edit{Text: given["text"]}, p.Actor())
	if err != nil {
		return conflict(err)
	}
	return write(w, http.StatusOK, e)
}

// remove serves DELETE /api/journal/entries/{id}.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	p, e, err := a.found(r, true)
	if err != nil {
		return err
	}
	version, err := matching(r, e)
	if err != nil { // it is not needed to delete
		version = e.Version
	}
	if err := a.o.Store.Delete(r.Context(), p.User, e.ID, version, p.Actor()); err != nil {
		return conflict(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// matching returns the version that If-Match names; "*" is the one that was read now.
func matching(r *http.Request, now journal.Entry) (string, error) {
	tag := strings.TrimSpace(r.Header.Get("If-Match"))
	switch {
	case tag == "":
		return "", web.Refuse(web.MatchRequired, "name in If-Match the version to change")
	case tag == "*":
		return now.Version, nil
	}
	return strings.Trim(tag, `"`), nil
}

// conflict returns err, or a 412 with the entry as it is now.
func conflict(err error) error {
	if c, ok := errors.AsType[*journal.Conflict](err); ok {
		return &web.Problem{Fault: web.PreconditionFailed, Detail: c.Error() + ": it is in current", Extra: map[string]any{"current": entryOf(c.Current)}}
	}
	return err
}

// read returns the text fields of a JSON body, and warns of others.
func read(w http.ResponseWriter, r *http.Request, names ...string) (map[string]*string, error) {
	raw, err := web.ReadJSON(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	given, err := web.FieldsOf(raw)
	if err != nil {
		return nil, err
	}
	out := map[string]*string{} // one for each of names
	for _, name := range names {
		value, there := given[name]
		delete(given, name)
		if !there {
			continue
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			return nil, web.FieldProblem(web.Invalid, name, name+" must be a text")
		}
		out[name] = &text
	}
	web.WarnUnknown(w, given)
	return out, nil
}

func write(w http.ResponseWriter, status int, e journal.Entry) error {
	w.Header().Set("ETag", `"`+e.Version+`"`)
	return web.WriteJSON(w, status, entryOf(e))
}
