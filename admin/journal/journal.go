// Package journal is the panel's page of the operator's journal: a day with its entries, a
// calendar, and the forms that add, change and delete entries.
package journal

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/admin/markdown"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/web/auth"
)

const (
	pagePath  = "/admin/journal"
	entryPath = pagePath + "/entry"
	filePath  = pagePath + "/file"
	maxForm   = 1 << 20 // bytes of a form: an entry's text, encoded
)

// Options for New. Without Store there is no page.
type Options struct {
	Store *journal.Store
	Files fs.FS // of the vault, following no link (vault.FS)
	// May reports whether a user at this trust may read a file of the vault, or write it.
	May func(trust core.Trust, user int64, name string, write bool) bool
	// Now returns the time in the user's time zone.
	Now func(ctx context.Context, user int64) (time.Time, error)
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{frame: f, o: o}
	if o.Store == nil {
		return p
	}
	f.Templates(files, template.FuncMap{"rendered": markdown.HTML})
	f.Page("GET "+pagePath, p.day)
	f.Form("POST "+pagePath, maxForm, p.add)
	f.Form("POST "+entryPath, maxForm, p.change)
	f.Page("GET "+filePath, p.file)
	return p
}

// Items returns the entry of the menu.
func (p *Pages) Items() []page.Item {
	if p.o.Store == nil {
		return nil
	}
	return []page.Item{{Key: "journal", Path: pagePath, Label: "Journal", NoView: true}}
}

// EntryURL returns the address of an entry, by its id, on the page of its day; "" where its
// file is of no day of the operator's journal or there are no pages.
func (p *Pages) EntryURL(file, id string) string {
	date := strings.TrimSuffix(path.Base(file), ".md")
	name, err := journal.PathOf(core.Operator, date)
	if p.o.Store == nil || err != nil || name != file {
		return ""
	}
	return dayURL(date) + "#e-" + url.PathEscape(id)
}

// dayURL returns the address of a day.
func dayURL(date string) string { return page.Address(pagePath, map[string]string{"date": date}) }

// allowed returns the account of r, if it may read the journal's file of a date, or write it.
func (p *Pages) allowed(r *http.Request, date string, write bool) (auth.Principal, error) {
	who, _ := page.Principal(r)
	name, err := journal.PathOf(core.Operator, date)
	if err == nil && !p.o.May(who.Trust, who.User, name, write) {
		err = core.Errorf(core.Denied, "your account may not read the operator’s journal")
	}
	return who, err
}

// date returns the day that r asks for, today without one.
func (p *Pages) date(r *http.Request) (date string, today time.Time, err error) {
	if today, err = p.o.Now(r.Context(), core.Operator); err != nil {
		return "", today, err
	}
	if date = r.FormValue("date"); date == "" {
		date = today.Format(time.DateOnly)
	}
	return date, today, journal.CheckDate(date)
}

// A draft is what was typed and is not stored.
type draft struct {
	ID, Version string // of the entry; "" for a new one
	Text        string
	Fault       string
	Now         *journal.Entry // as it is now, after a conflict
}

// day serves GET /admin/journal.
func (p *Pages) day(w http.ResponseWriter, r *http.Request) error {
	return p.show(w, r, http.StatusOK, draft{ID: r.URL.Query().Get("edit")})
}

// show shows a day with a draft.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, d draft) error {
	date, today, err := p.date(r)
	if err != nil {
		return err
	}
	if _, err := p.allowed(r, date, false); err != nil {
		return err
	}
	at, _ := time.Parse(time.DateOnly, date) // it was checked
	b := body{Date: date, Title: at.Format("Monday, 2 January 2006"), Today: dayURL(today.Format(time.DateOnly)), IsToday: date == today.Format(time.DateOnly),
		Prev: dayURL(at.AddDate(0, 0, -1).Format(time.DateOnly)), Next: dayURL(at.AddDate(0, 0, 1).Format(time.DateOnly)), Draft: d}
	read := page.Load(r.Context(), p.frame, "The journal", func(ctx context.Context) (journal.Day, error) {
		return p.o.Store.Day(ctx, core.Operator, date)
	})
	b.Broken, b.Head, b.Path = read.Broken, read.Value.Head, read.Value.Path
	for _, e := range read.Value.Entries {
		b.Entries = append(b.Entries, entryOf(e, &b.Draft))
	}
	if d.ID != "" && d.Text != "" && !slices.ContainsFunc(b.Entries, func(e entry) bool { return e.Editing }) {
		b.Draft.ID = "" // the entry is gone: what was typed can be added again
	}
	days := page.Load(r.Context(), p.frame, "The calendar", func(ctx context.Context) ([]string, error) {
		return p.o.Store.Days(ctx, core.Operator, date[:len("2006-01")])
	})
	b.Month = monthOf(at, today, days.Value)
	return p.frame.Show(w, r, status, "journal", page.View{Title: "Journal, " + at.Format("2 January 2006"), Still: true, Body: b})
}

// add serves POST /admin/journal.
func (p *Pages) add(w http.ResponseWriter, r *http.Request) error {
	date, now, err := p.date(r)
	if err != nil {
		return err
	}
	who, err := p.allowed(r, date, true)
	if err != nil {
		return err
	}
	e, err := p.o.Store.Append(r.Context(), core.Operator, journal.Draft{Date: date, At: now, Text: r.PostFormValue("text")}, who.Actor())
	if err != nil {
		return p.refused(w, r, draft{Text: r.PostFormValue("text")}, err)
	}
	p.frame.SetFlash(w, r, page.Flash{Kind: "good", Text: "Added at " + e.Time + "."})
	return p.frame.Away(w, r, dayURL(date)+"#e-"+e.ID)
}

// change serves POST /admin/journal/entry: it saves the text of an entry, or deletes it.
func (p *Pages) change(w http.ResponseWriter, r *http.Request) error {
	date, _, err := p.date(r)
	if err != nil {
		return err
	}
	who, err := p.allowed(r, date, true)
	if err != nil {
		return err
	}
	text := r.PostFormValue("text")
	d := draft{ID: r.PostFormValue("id"), Version: r.PostFormValue("version"), Text: text}
	said, to := page.Flash{Kind: "good", Text: "Saved."}, dayURL(date)
	if r.PostFormValue("do") == "delete" {
		err = p.o.Store.Delete(r.Context(), core.Operator, d.ID, d.Version, who.Actor())
		said.Text = "Deleted. Its recordings and pictures are still in the vault."
	} else {
		_, err = p.o.Store.Edit(r.Context(), core.Operator, d.ID, d.Version, journal.Edit{Text: &text}, who.Actor())
		to += "#e-" + d.ID
	}
	if err != nil {
		return p.refused(w, r, d, err)
	}
	p.frame.SetFlash(w, r, said)
	return p.frame.Away(w, r, to)
}

// refused shows the day with what was typed, and why it was not stored.
func (p *Pages) refused(w http.ResponseWriter, r *http.Request, d draft, err error) error {
	status := http.StatusBadRequest
	d.Fault = page.Sentence(core.TextOf(err))
	if c, ok := errors.AsType[*journal.Conflict](err); ok {
		status, d.Now, d.Version = http.StatusConflict, &c.Current, c.Current.Version
		d.Fault = "The entry was changed meanwhile, so nothing was saved. Its present text is above yours: bring both together, and save."
	}
	if core.KindOf(err) == core.Other {
		return err
	}
	return p.show(w, r, status, d)
}

// types are the files that are shown, by ending.
var types = map[string]string{
	".ogg": "audio/ogg", ".oga": "audio/ogg", ".opus": "audio/ogg", ".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".wav": "audio/wav", ".flac": "audio/flac", ".aac": "audio/aac",
	".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".gif": "image/gif", ".webp": "image/webp",
}

// file serves GET /admin/journal/file: a recording or a picture of the journal.
func (p *Pages) file(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	name, err := journal.FileOf(core.Operator, r.URL.Query().Get("path"))
	kind := types[strings.ToLower(path.Ext(name))]
	if err != nil || kind == "" || !p.o.May(who.Trust, who.User, name, false) {
		return core.Errorf(core.NotFound, "the journal has no such attachment")
	}
	f, err := p.o.Files.Open(name)
	if err != nil {
		return core.Errorf(core.NotFound, "the journal has no such attachment")
	}
	defer f.Close()
	st, err := f.Stat()
	seek, ok := f.(io.ReadSeeker)
	if err != nil || !ok || !st.Mode().IsRegular() {
		return core.Errorf(core.NotFound, "the journal has no such attachment")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=3600")
	http.ServeContent(page.Slow(w), r, "", st.ModTime(), seek)
	return nil
}
