// Package contexts is the panel's pages of saved contexts: the list, and one in the editor. It
// also has what the pages of conversations need to choose one.
package contexts

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/contexts"
	"gatehouse/web/auth"
)

const (
	listPath = "/admin/contexts"
	editPath = listPath + "/edit"
	maxForm  = 1 << 20 // bytes of the editor's form: 100 paths of 1,024 bytes, encoded
	maxRows  = 200     // contexts of the list
	maxPaths = 6       // paths of a context in the list
)

// Store keeps saved contexts (contexts.Store).
type Store interface {
	Get(name string) (contexts.Context, error)
	Put(c contexts.Context) (contexts.Context, error)
	Delete(name string) error
	Names() []string
}

// Options for New. Without Store there are no pages.
type Options struct {
	Store Store
	Files fs.FS // of the vault, following no link (vault.FS)
	// May reports whether a user at this trust may read a file of the vault, or write it.
	May func(trust core.Trust, user int64, name string, write bool) bool
	// Did adds an entry to the audit log.
	Did func(ctx context.Context, by core.Actor, action, subject string) error
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f, below the page of the conversations.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{frame: f, o: o}
	if o.Store == nil {
		return p
	}
	f.Templates(files, nil)
	f.Page("GET "+listPath, p.list)
	f.Page("GET "+editPath, p.edit)
	f.Form("POST "+editPath, maxForm, p.save)
	f.Post("POST "+listPath+"/{name}/delete", p.remove)
	f.Below("chats", page.Item{Path: listPath, Label: "Saved contexts", NoView: true})
	return p
}

// Names returns the saved contexts that the account may choose.
func (p *Pages) Names(who auth.Principal) (names []string) {
	if p.o.Store == nil {
		return nil
	}
	for _, name := range p.o.Store.Names() {
		if p.may(who, fileOf(name), false) {
			names = append(names, name)
		}
	}
	return names
}

// Paths returns the directories and files of a saved context that a user at this trust may read,
// and how many more it has; core.NotFound of one that the account may not choose.
func (p *Pages) Paths(who auth.Principal, name string, trust core.Trust, user int64) (paths []string, left int, err error) {
	missing := core.Errorf(core.NotFound, "there is no saved context %s", core.CutRunes(name, 64))
	if p.o.Store == nil || contexts.CheckName(name) != nil || !p.may(who, fileOf(name), false) {
		return nil, 0, missing
	}
	c, err := p.o.Store.Get(name)
	if err != nil {
		return nil, 0, err
	}
	paths, left = c.Paths(func(path string) bool { return p.o.May(trust, user, path, false) })
	return paths, left, nil
}

func fileOf(name string) string { return contexts.Dir + "/" + name + ".json" }

func (p *Pages) may(who auth.Principal, file string, write bool) bool {
	return p.o.May(who.Trust, who.User, file, write)
}

// mine returns which paths the account may read.
func (p *Pages) mine(who auth.Principal) func(path string) bool {
	return func(path string) bool { return p.may(who, path, false) }
}

type listBody struct {
	CSRF string
	Rows []row
	More int // further contexts
	Lede string
}

// A row is a saved context as it is listed. All texts are hostile.
type row struct {
	contexts.Context
	Edit    string // address
	Fault   string // why its file cannot be used
	Shown   []string
	More    int // further paths
	Missing int // paths that are not in the vault
}

// list serves GET /admin/contexts.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	who, err := p.allowed(r)
	if err != nil {
		return err
	}
	names := p.Names(who)
	b := listBody{CSRF: page.Token(r), Lede: "Named lists of folders and files that a conversation can be about."}
	b.More = page.Cut(&names, maxRows)
	for _, name := range names {
		b.Rows = append(b.Rows, p.row(who, name))
	}
	return p.frame.Show(w, r, http.StatusOK, "contexts", page.View{Title: "Saved contexts", In: "chats", Body: b})
}

func (p *Pages) row(who auth.Principal, name string) row {
	out := row{Edit: page.Address(editPath, map[string]string{"name": name})}
	c, err := p.o.Store.Get(name)
	if out.Context = c; err != nil {
		out.Name, out.Fault = name, page.Sentence(core.TextOf(err))
		return out
	}
	paths, _ := c.Paths(p.mine(who))
	out.Missing = len(p.missing(paths))
	out.More = page.Cut(&paths, maxPaths)
	out.Shown = paths
	return out
}

// missing returns the paths that are not in the vault.
func (p *Pages) missing(paths []string) (list []string) {
	for _, path := range paths {
		if _, err := fs.Stat(p.o.Files, strings.TrimSuffix(path, "/")); err != nil {
			list = append(list, path)
		}
	}
	return list
}

// allowed returns the account of r, if saved contexts are open to it: they are the owner's.
func (p *Pages) allowed(r *http.Request) (auth.Principal, error) {
	who, _ := page.Principal(r)
	if !p.may(who, fileOf("any"), false) {
		return who, core.Errorf(core.Denied, "your account may not read the vault, in which saved contexts are")
	}
	return who, nil
}

// remove deletes a saved context.
func (p *Pages) remove(r *http.Request, by core.Actor) (page.Flash, string, error) {
	name := r.PathValue("name")
	who, err := p.allowed(r)
	if err == nil && !p.may(who, fileOf(name), true) {
		err = core.Errorf(core.Denied, "your account may not change this saved context")
	}
	if err == nil {
		err = p.o.Store.Delete(name)
	}
	if err == nil {
		err = p.o.Did(r.Context(), by, "context.delete", name)
	}
	return page.Good(name + " is deleted. Conversations that it was chosen for keep their folders and files."), listPath, err
}

// lines returns the lines of a field that are not empty.
func lines(s string) (list []string) {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}
