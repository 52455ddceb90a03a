package contexts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/contexts"
)

// An editBody is a context in the editor: as it was typed, after a fault.
type editBody struct {
	CSRF        string
	New         bool
	Name        string
	Description string
	Paths       string // one a line; a directory ends with /
	Version     string // of what is saved; "" of a new one
	Fault       string
	At          string // the field of the fault: "name" or "paths"
	Now         string // the saved paths, where another change was saved first
	Missing     []string
}

// edit serves GET /admin/contexts/edit: with a name the saved context, else a new one.
func (p *Pages) edit(w http.ResponseWriter, r *http.Request) error {
	who, err := p.allowed(r)
	if err != nil {
		return err
	}
	b := editBody{Name: r.URL.Query().Get("name")}
	if b.Name == "" {
		b.New = true
		return p.showEdit(w, r, http.StatusOK, b)
	}
	c, err := p.o.Store.Get(b.Name)
	switch kind := core.KindOf(err); {
	case contexts.CheckName(b.Name) != nil || kind == core.NotFound || !p.may(who, fileOf(b.Name), false):
		return core.Errorf(core.NotFound, "there is no such saved context")
	case kind == core.Invalid: // what is saved here replaces it
		b.Fault, b.Version = page.Sentence(core.TextOf(err)), "broken"
		return p.showEdit(w, r, http.StatusOK, b)
	case err != nil:
		return err
	}
	b.Description, b.Paths, b.Version = c.Description, textOf(c.Only(p.mine(who))), versionOf(c)
	b.Missing = p.missing(lines(b.Paths))
	return p.showEdit(w, r, http.StatusOK, b)
}

func (p *Pages) showEdit(w http.ResponseWriter, r *http.Request, status int, b editBody) error {
	b.CSRF = page.Token(r)
	title := "New saved context"
	if !b.New {
		title = b.Name
	}
	return p.frame.Show(w, r, status, "contextedit", page.View{Title: title, In: "chats", Still: true, Body: b})
}

// save serves POST /admin/contexts/edit.
func (p *Pages) save(w http.ResponseWriter, r *http.Request) error {
	b := editBody{New: r.PostFormValue("version") == "", Name: strings.TrimSpace(r.PostFormValue("name")), Version: r.PostFormValue("version"),
		Description: strings.TrimSpace(r.PostFormValue("description")), Paths: r.PostFormValue("paths")}
	was, now, err := p.put(r, b)
	if err == nil {
		if missing := p.missing(slices.Concat(now.Folders, now.Files)); len(missing) > 0 {
			p.frame.SetFlash(w, r, page.Note(now.Name+" is saved. Not in the vault now: "+core.CutRunes(strings.Join(missing, ", "), 300)+"."))
		} else {
			p.frame.SetFlash(w, r, page.Good(now.Name+" is saved."))
		}
		return p.frame.Away(w, r, listPath)
	}
	if core.KindOf(err) == core.Other {
		return err
	}
	b.Fault, b.At = page.Sentence(core.TextOf(err)), "paths"
	if b.New && (core.KindOf(err) == core.Conflict || contexts.CheckName(b.Name) != nil) {
		b.At = "name"
	}
	if core.KindOf(err) == core.Conflict && !b.New { // saving again replaces what is there now
		who, _ := page.Principal(r)
		b.Version, b.Now = versionOf(was), textOf(was.Only(p.mine(who)))
	}
	return p.showEdit(w, r, http.StatusUnprocessableEntity, b)
}

// put saves what was typed over the version that it was typed for. It returns the context that
// was there, and the one that is.
func (p *Pages) put(r *http.Request, b editBody) (was, now contexts.Context, err error) {
	who, err := p.allowed(r)
	if err == nil {
		err = contexts.CheckName(b.Name)
	}
	if err != nil {
		return was, now, err
	}
	if !p.may(who, fileOf(b.Name), true) {
		return was, now, core.Errorf(core.Denied, "your account may not change this saved context")
	}
	was, err = p.o.Store.Get(b.Name)
	switch kind := core.KindOf(err); {
	case kind == core.NotFound || kind == core.Invalid && b.Version != "":
	case err != nil:
		return was, now, err
	case b.Version == "":
		return was, now, core.Errorf(core.Conflict, "there is a saved context %s: choose another name, or edit that one", b.Name)
	case b.Version != versionOf(was):
		return was, now, core.Errorf(core.Conflict, "the context was changed meanwhile, so nothing was saved; save again to replace it")
	}
	now = contexts.Context{Name: b.Name, Description: b.Description}
	for _, line := range lines(b.Paths) {
		if p.isFolder(line, was) {
			now.Folders = append(now.Folders, line)
		} else {
			now.Files = append(now.Files, line)
		}
	}
	if _, left := now.Paths(p.mine(who)); left > 0 {
		return was, now, core.Errorf(core.Denied, "one of the paths is not open to your account")
	}
	hidden := was.Only(func(name string) bool { return !p.may(who, name, false) }) // they were not in the editor
	now.Folders, now.Files = append(now.Folders, hidden.Folders...), append(now.Files, hidden.Files...)
	if now, err = p.o.Store.Put(now); err != nil {
		return was, now, err
	}
	return was, now, p.o.Did(r.Context(), who.Actor(), "context.save", now.Name)
}

// isFolder reports whether a line names a folder: it ends with /, or is one in the vault, or was one.
func (p *Pages) isFolder(line string, was contexts.Context) bool {
	name := path.Clean(strings.TrimSuffix(line, "/"))
	if strings.HasSuffix(line, "/") || slices.Contains(was.Folders, name) {
		return true
	}
	st, err := fs.Stat(p.o.Files, name)
	return err == nil && st.IsDir()
}

// textOf returns the paths of a context for the editor.
func textOf(c contexts.Context) string {
	var b strings.Builder
	for _, folder := range c.Folders {
		b.WriteString(folder + "/\n")
	}
	for _, file := range c.Files {
		b.WriteString(file + "\n")
	}
	return b.String()
}

// versionOf returns what differs when a context has changed.
func versionOf(c contexts.Context) string {
	text, _ := json.Marshal(c) // strings and lists of them
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
