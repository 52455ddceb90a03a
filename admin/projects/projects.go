// Package projects is the panel's page of projects: all of them with whose they are and
// what belongs to each, and what an account can do with its own. It also has what other
// pages need to choose one.
package projects

import (
	"context"
	"embed"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/project"
)

const (
	pagePath = "/admin/projects"
	perPage  = 50
	maxQuery = project.MaxName
)

// Options for New. Without Store there is no page.
type Options struct {
	Store *project.Store
	// Did adds an entry to the audit log; required.
	Did func(ctx context.Context, by core.Actor, action, subject string) error
}

// Links are what other pages of the panel offer to this one.
type Links struct {
	Names func(ctx context.Context) page.Names
	Chats bool // there is a page of conversations
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
	links Links
}

//go:embed templates/*.html
var files embed.FS

// New registers the page with f, below that of the conversations.
func New(f *page.Frame, o Options, l Links) *Pages {
	p := &Pages{frame: f, o: o, links: l}
	if o.Store == nil {
		return p
	}
	f.Templates(files, nil)
	f.Page("GET "+pagePath, p.list)
	f.Page("POST "+pagePath, p.create)
	f.Page("POST "+pagePath+"/{id}/rename", p.rename)
	f.Post("POST "+pagePath+"/{id}/{verb}", p.act)
	f.Below("chats", page.Item{Path: pagePath, Label: "Projects"})
	return p
}

// Choices returns the newest projects by name with whose they are, and the chosen one
// among them; chosen is an id, "" is none. Without a page, and where they cannot be read,
// there are none.
func (p *Pages) Choices(ctx context.Context, chosen string) []page.Choice {
	return p.choices(ctx, 0, chosen, p.links.Names)
}

// Of is Choices of one user's projects, by name alone.
func (p *Pages) Of(ctx context.Context, user int64, chosen string) []page.Choice {
	return p.choices(ctx, user, chosen, nil)
}

// choices returns projects of a user, 0 for those of all; with names, also whose they are.
func (p *Pages) choices(ctx context.Context, user int64, chosen string, names func(context.Context) page.Names) (list []page.Choice) {
	if p.o.Store == nil {
		return nil
	}
	all := p.read(ctx, project.Filter{User: user, Limit: page.MaxChoice})
	if has := func(x project.Overview) bool { return x.ID == chosen }; chosen != "" && !slices.ContainsFunc(all, has) {
		all = append(slices.Clone(all), p.read(ctx, project.Filter{ID: chosen, Limit: 1})...)
	}
	if len(all) == 0 {
		return nil
	}
	var owners page.Names
	if names != nil {
		owners = names(ctx)
	}
	for _, x := range all {
		label := x.Name
		if names != nil {
			label += " · " + owners.Of(x.User)
		}
		list = append(list, page.Choice{Value: x.ID, Label: label})
	}
	page.ByLabel(list)
	return list
}

// read returns the projects that f chooses, read once for a request; none where they cannot be
// read.
func (p *Pages) read(ctx context.Context, f project.Filter) []project.Overview {
	return page.Once(ctx, p.frame, "projects "+f.ID+" "+number(f.User), "The list of projects", func(ctx context.Context) ([]project.Overview, error) {
		all, _, err := p.o.Store.All(ctx, f)
		return all, err
	}).Value
}

// Name returns the name of a project; "" where there is none, and where it cannot be read.
func (p *Pages) Name(ctx context.Context, id string) string {
	if p.o.Store == nil || id == "" {
		return ""
	}
	all := p.read(ctx, project.Filter{ID: id, Limit: 1})
	if len(all) == 0 {
		return ""
	}
	return all[0].Name
}

// A filter is what the list is narrowed to, as the address has it.
type filter struct {
	Query string
	User  int64
	Skip  int
	one   string // an id; "" is any
}

// A draft is a name that was refused. The zero value is none.
type draft struct{ ID, Name, Fault string } // ID is "" for a new project

func filterOf(r *http.Request) (f filter) {
	v := r.URL.Query()
	f.Query = strings.TrimSpace(strings.ToValidUTF8(v.Get("q"), "�"))
	if rs := []rune(f.Query); len(rs) > maxQuery {
		f.Query = string(rs[:maxQuery])
	}
	f.User, _ = strconv.ParseInt(v.Get("user"), 10, 64) // what is no number filters nothing
	f.Skip, _ = strconv.Atoi(v.Get("after"))
	f.Skip = max(0, f.Skip)
	return f
}

// Any reports whether the list is narrowed.
func (f filter) Any() bool { return f.Query != "" || f.User != 0 || f.one != "" }

// Who returns the person that the list is of, as the form has it.
func (f filter) Who() string { return number(f.User) }

func (f filter) address(skip int) string {
	return page.Address(pagePath, map[string]string{"q": f.Query, "user": f.Who(), "after": number(int64(skip))})
}

// number returns n, "" for 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

type body struct {
	CSRF        string
	Filter      filter
	People      []page.Choice
	Rows        page.Part[[]row]
	Next, First string // addresses
	Max         int    // characters of a name
	Draft       draft
}

// A row is a project as it is listed. Its name and the owner's are hostile.
type row struct {
	project.Overview
	Owner string
	Own   bool   // the account's: it can be changed
	Chats string // address of its conversations; "" for none
}

// list serves GET /admin/projects.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	return p.show(w, r, http.StatusOK, draft{})
}

// show shows the list; with a refused name of a project, that one alone.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, d draft) error {
	who, _ := page.Principal(r)
	f := filterOf(r)
	f.one = d.ID
	b := body{CSRF: page.Token(r), Filter: f, Max: project.MaxName, Draft: d}
	names := p.links.Names(r.Context())
	b.Rows = page.Load(r.Context(), p.frame, "The list of projects", func(ctx context.Context) (rows []row, err error) {
		all, more, err := p.o.Store.All(ctx, project.Filter{User: f.User, Text: f.Query, ID: f.one, Skip: f.Skip, Limit: perPage, Counted: true})
		for _, x := range all {
			one := row{Overview: x, Owner: names.Of(x.User), Own: x.User == who.User}
			if p.links.Chats && x.Sessions > 0 {
				one.Chats = page.Address("/admin/chats", map[string]string{"state": "all", "project": x.ID})
			}
			rows = append(rows, one)
		}
		if more {
			b.Next = f.address(f.Skip + perPage)
		}
		return rows, err
	})
	if f.Skip > 0 {
		b.First = f.address(0)
	}
	b.People = names.Choices(f.User)
	return p.frame.Show(w, r, status, "projects", page.View{Title: "Projects", In: "chats", Still: d.Fault != "", Body: b})
}

// named changes the name of a project, or makes one, and shows a refusal at the field.
func (p *Pages) named(w http.ResponseWriter, r *http.Request, action, id string, change func(user int64, name string) (project.Project, error)) error {
	who, _ := page.Principal(r)
	name := r.PostFormValue("name")
	now, err := change(who.User, name)
	switch core.KindOf(err) {
	case core.Conflict, core.Invalid:
		return p.show(w, r, http.StatusUnprocessableEntity, draft{ID: id, Name: name, Fault: page.Sentence(core.TextOf(err))})
	case core.NotFound:
		p.frame.SetFlash(w, r, page.Flash{Kind: "note", Text: page.Sentence(core.TextOf(err))})
		return p.frame.Away(w, r, pagePath)
	}
	if err == nil {
		err = p.o.Did(r.Context(), who.Actor(), action, now.ID)
	}
	if err != nil {
		return err
	}
	said := "The project is called " + now.Name + "."
	if id == "" {
		said = "The project " + now.Name + " is created. Send /project " + now.Name + " in a chat with a bot to choose it there."
	}
	p.frame.SetFlash(w, r, page.Good(said))
	return p.frame.Away(w, r, pagePath)
}

// create serves POST /admin/projects.
func (p *Pages) create(w http.ResponseWriter, r *http.Request) error {
	return p.named(w, r, "project.create", "", func(user int64, name string) (project.Project, error) {
		return p.o.Store.Create(r.Context(), user, name)
	})
}

// rename serves POST /admin/projects/{id}/rename.
func (p *Pages) rename(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return p.named(w, r, "project.rename", id, func(user int64, name string) (project.Project, error) {
		return p.o.Store.Rename(r.Context(), user, id, name)
	})
}

// act serves POST /admin/projects/{id}/{verb}. The store refuses another person's project.
func (p *Pages) act(r *http.Request, by core.Actor) (said page.Flash, back string, err error) {
	id := r.PathValue("id")
	switch r.PathValue("verb") {
	case "delete":
		if err = p.o.Store.Delete(r.Context(), by.User, id); err == nil {
			err = p.o.Did(r.Context(), by, "project.delete", id)
		}
		said = page.Good("The project is deleted. Its conversations stay.")
	default:
		err = core.Errorf(core.NotFound, "there is no such action")
	}
	return said, pagePath, err
}
