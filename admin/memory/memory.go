// Package memory is the panel's page of what is remembered of the account's person.
package memory

import (
	"context"
	"embed"
	"net/http"
	"strconv"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
	"gatehouse/web/auth"
)

const (
	pagePath = "/admin/memory"
	actPath  = "/admin/memory/act"
	perPage  = 30
)

// Options for New. Without Store there is no page.
type Options struct {
	Store *memory.Store
}

// Links are what other pages of the panel offer to this one.
type Links struct {
	Project func(ctx context.Context, id string) (name string) // "" where there is none
	// Projects returns a user's projects to choose from, by id, the chosen one among them.
	Projects func(ctx context.Context, user int64, chosen string) []page.Choice
	Chats    bool // there is a page of conversations
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
	links Links
}

//go:embed templates/*.html
var files embed.FS

// New registers the page with f.
func New(f *page.Frame, o Options, l Links) *Pages {
	p := &Pages{frame: f, o: o, links: l}
	if o.Store == nil {
		return p
	}
	f.Templates(files, nil)
	f.Page("GET "+pagePath, p.list)
	f.Page("POST "+pagePath, p.add)
	f.Page("POST "+actPath, p.act)
	return p
}

// Items returns the entry of the menu.
func (p *Pages) Items() []page.Item {
	if p.o.Store == nil {
		return nil
	}
	return []page.Item{{Key: "memory", Path: pagePath, Label: "Memory", NoView: true}}
}

// Text returns the text of a correction of who is signed in; "" where there is none. A user does not read
// what is remembered of others.
func (p *Pages) Text(ctx context.Context, id string) string {
	who, ok := auth.From(ctx)
	if p.o.Store == nil || !ok {
		return ""
	}
	c, err := p.o.Store.Get(ctx, who.User, id)
	if err != nil {
		return ""
	}
	return c.Text
}

// A where is the place that a correction is for; all of it is "" for a global one.
type where struct {
	Kind string // "project" or "conversation"
	Name string // the project's, hostile; "" where it was deleted
	URL  string // of the conversations, or of the one; "" where there is no page
}

func (p *Pages) where(ctx context.Context, c *memory.Correction) (w where) {
	switch c.Scope {
	case detect.Project:
		w.Kind, w.Name = "project", p.links.Project(ctx, c.ScopeRef)
		if w.Name != "" && p.links.Chats {
			w.URL = page.Address("/admin/chats", map[string]string{"state": "all", "project": c.ScopeRef})
		}
	case detect.Conversation:
		if w.Kind = "conversation"; p.links.Chats {
			w.URL = "/admin/chats/" + c.ScopeRef
		}
	}
	return w
}

// A draft is what was typed and is not stored.
type draft struct{ ID, Text, Fault string }

// A row is a correction as it is listed. All texts are hostile.
type row struct {
	memory.Correction
	Kind    string
	Where   where
	Editing bool
	Edit    string // addresses; the field gets the focus, which an address with a part does not give
	History string
	Events  []event
	Open    bool // its events are shown
}

// An event is one as it is listed.
type event struct {
	memory.Event
	Label, URL string
}

// A card is an open question.
type card struct {
	memory.Correction
	Question string
	Kind     string
	Where    where
	Editing  bool
	Edit     string // address
	Old      string // what it contradicts
	Number   int    // of that; 0 where it is no longer in force
}

type body struct {
	Query         string
	Project       string        // its id; "" is any
	Projects      []page.Choice // to choose from
	Active, Cards int
	Open          []card
	Rows          []row
	Deleted       []memory.Correction
	Next, First   string // addresses
	Draft         draft
	Broken        string
}

// address returns the page's address with what is shown.
func address(query, project string, values ...string) string {
	v := map[string]string{}
	if query != "" {
		v["q"] = query
	}
	if project != "" {
		v["project"] = project
	}
	for i := 0; i+1 < len(values); i += 2 {
		v[values[i]] = values[i+1]
	}
	return page.Address(pagePath, v)
}

// list serves GET /admin/memory.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	return p.show(w, r, http.StatusOK, draft{ID: r.FormValue("edit")})
}

var kinds = map[detect.Type]string{detect.Factual: "Correction", detect.Instruction: "Instruction", detect.Preference: "Preference", detect.Decision: "Decision", detect.Failure: "Repeated mistake"}

func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, d draft) error {
	who, _ := page.Principal(r)
	b := body{Query: strings.TrimSpace(core.CutRunes(r.FormValue("q"), 200)), Project: core.CutRunes(r.FormValue("project"), 64), Draft: d}
	b.Projects = p.links.Projects(r.Context(), who.User, "")
	after, _ := strconv.Atoi(r.FormValue("after"))
	all, next, err := p.o.Store.List(r.Context(), who.User, memory.Filter{Text: b.Query, Project: b.Project, After: max(0, after), Limit: perPage})
	if err != nil {
		return err
	}
	if b.Active, b.Cards, err = p.o.Store.Count(r.Context(), who.User); err != nil {
		return err
	}
	for _, c := range all {
		one := row{Correction: c, Kind: kinds[c.Type], Editing: d.ID == c.ID, Edit: address(b.Query, b.Project, "edit", c.ID), History: address(b.Query, b.Project, "used", c.ID) + "#c-" + c.ID, Open: r.FormValue("used") == c.ID}
		one.Where = p.where(r.Context(), &c)
		if one.Editing && d.Fault == "" {
			b.Draft.Text = c.Text
		}
		if one.Open {
			if one.Events, err = p.events(r.Context(), who, c.ID); err != nil {
				return err
			}
		}
		b.Rows = append(b.Rows, one)
	}
	if next > 0 {
		b.Next = address(b.Query, b.Project, "after", strconv.Itoa(next))
	}
	if after > 0 {
		b.First = address(b.Query, b.Project)
	}
	if b.Query == "" && b.Project == "" && after == 0 {
		if err := p.aside(r.Context(), who, &b); err != nil {
			return err
		}
	}
	return p.frame.Show(w, r, status, "memory", page.View{Title: "Memory", Still: true, Body: b})
}

// aside adds open questions, and what can be brought back.
func (p *Pages) aside(ctx context.Context, who auth.Principal, b *body) error {
	open, _, err := p.o.Store.List(ctx, who.User, memory.Filter{Cards: true, Limit: memory.MaxCards})
	if err != nil {
		return err
	}
	for _, c := range open {
		one := card{Correction: c, Question: "Should this be remembered?", Kind: kinds[c.Type], Where: p.where(ctx, &c), Editing: b.Draft.ID == c.ID && c.Conflicts == "", Edit: address("", "", "edit", c.ID)}
		if one.Editing && b.Draft.Fault == "" {
			b.Draft.Text = c.Text
		}
		switch c.Card {
		case memory.CardImplicit:
			one.Question = "Is this a correction?"
		case memory.CardConflict, memory.CardEdited, memory.CardRestored:
			one.Question = "Which one applies?"
		}
		if c.Conflicts != "" {
			old, err := p.o.Store.Get(ctx, who.User, c.Conflicts)
			if err != nil && core.KindOf(err) != core.NotFound { // deleted since
				return err
			}
			if old.Status == memory.Active {
				one.Old, one.Number = old.Text, old.Number
			}
		}
		b.Open = append(b.Open, one)
	}
	b.Deleted, _, err = p.o.Store.List(ctx, who.User, memory.Filter{Status: memory.Deleted, Limit: perPage})
	return err
}

var labels = map[string]string{
	memory.EventCreated: "Remembered", memory.EventAccepted: "Confirmed", memory.EventEdited: "Edited", memory.EventPinned: "Pinned", memory.EventUnpinned: "Unpinned", memory.EventSuperseded: "Replaced",
	memory.EventRestored: "Brought back", memory.EventDeleted: "Deleted", memory.EventUsed: "Used for an answer", memory.EventViolated: "Used; the answer did not follow it", memory.EventFollowed: "Used; the answer followed it",
	memory.EventRead:      "Type set by a model",
	memory.EventRewritten: "An answer that did not follow it was written again",
}

func (p *Pages) events(ctx context.Context, who auth.Principal, id string) (out []event, err error) {
	all, err := p.o.Store.Events(ctx, who.User, id)
	for _, e := range all {
		one := event{Event: e, Label: labels[e.Kind]}
		if e.Session != "" {
			one.URL = "/admin/chats/" + e.Session
		}
		out = append(out, one)
	}
	return out, err
}

// add serves POST /admin/memory.
func (p *Pages) add(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	text := r.PostFormValue("text")
	l, err := p.o.Store.Add(r.Context(), who.User, memory.Draft{Text: text}, who.Actor())
	if err != nil {
		return p.refused(w, r, draft{Text: text}, err)
	}
	return p.done(w, r, "Remembered as #"+strconv.Itoa(l.Correction.Number)+".")
}

// refused shows the page with what was typed, and why it was not stored.
func (p *Pages) refused(w http.ResponseWriter, r *http.Request, d draft, err error) error {
	if core.KindOf(err) == core.Other {
		return err
	}
	d.Fault = page.Sentence(core.TextOf(err))
	return p.show(w, r, http.StatusBadRequest, d)
}

func (p *Pages) done(w http.ResponseWriter, r *http.Request, said string) error {
	p.frame.SetFlash(w, r, page.Flash{Kind: "good", Text: said})
	return p.frame.Away(w, r, address(r.FormValue("q"), r.FormValue("project")))
}

// act serves POST /admin/memory/act: what its buttons do.
func (p *Pages) act(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	id, text := r.PostFormValue("id"), r.PostFormValue("text")
	yes, no := true, false
	var err error
	said := ""
	switch do := r.PostFormValue("do"); do {
	case "edit", "edit-save":
		if _, err = p.o.Store.Update(r.Context(), who.User, id, memory.Change{Text: &text}, who.Actor()); err != nil {
			return p.refused(w, r, draft{ID: id, Text: text}, err)
		}
		if said = "Saved."; do == "edit-save" {
			_, err = p.o.Store.Decide(r.Context(), who.User, id, memory.ChoiceSave, who.Actor())
			said = "Remembered as you wrote it."
		}
	case "pin":
		_, err = p.o.Store.Update(r.Context(), who.User, id, memory.Change{Pinned: &yes}, who.Actor())
		said = "Pinned: it is in every prompt."
	case "unpin":
		_, err = p.o.Store.Update(r.Context(), who.User, id, memory.Change{Pinned: &no}, who.Actor())
		said = "Unpinned."
	case "delete":
		_, err = p.o.Store.Delete(r.Context(), who.User, id, who.Actor())
		said = "Deleted. You can undo it below for 24 hours."
	case "undo":
		_, err = p.o.Store.Restore(r.Context(), who.User, id, who.Actor())
		said = "Brought back."
	default:
		_, err = p.o.Store.Decide(r.Context(), who.User, id, do, who.Actor())
		if said = "Remembered."; do == memory.ChoiceSkip {
			said = "Not remembered."
		}
	}
	if err != nil {
		return err
	}
	return p.done(w, r, said)
}
