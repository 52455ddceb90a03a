// Package imports is the panel's page on which conversations of other systems are brought in: a file
// is sent or a path named, the progress is shown, and the report can be downloaded.
package imports

import (
	"context"
	"embed"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/web/importing"
)

// Path is the address of the page.
const Path = "/admin/import"

type (
	// Imports start, stop and list imports (tasks.Tasks).
	Imports interface {
		importing.Starter
		Start(ctx context.Context, o report.Order, t foreign.Terms, by core.Actor) (string, error)
		Stop(ctx context.Context, id string, by core.Actor) error
		List() []report.State
	}
)

// Options for New. Without Imports there is no page.
type Options struct {
	Imports Imports
	Entries importing.Entries
	Temp    importing.Temp
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
}

//go:embed templates/*.html
var files embed.FS

// New registers the page with f, below the page Chats.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{frame: f, o: o}
	if o.Imports == nil {
		return p
	}
	f.Templates(files, nil)
	f.Page("GET "+Path, p.show)
	f.Below("chats", page.Item{Path: Path, Label: "Import conversations"})
	f.UploadOf("POST "+Path, importing.MaxUpload, importing.UploadTime, p.start)
	f.Post("POST "+Path+"/{id}/stop", p.stop)
	f.Page("GET "+Path+"/{id}/report", func(w http.ResponseWriter, r *http.Request) error {
		return importing.WriteEntries(page.Slow(w), r, p.o.Entries, r.PathValue("id"))
	})
	return p
}

type body struct {
	CSRF    string
	Running *row
	Past    []row
	Path    bool   // a path may be named
	Most    string // the largest upload
}

// A row is one import.
type row struct {
	report.State
	Percent int64
	Faults  []report.Entry // the first ones
	More    int            // further ones
}

// shownFaults is how many faults of an import the page lists.
const shownFaults = 50

func rowOf(s report.State) row {
	r := row{State: s, Faults: s.Report.Faults[:min(shownFaults, len(s.Report.Faults))]}
	r.More = s.Report.Failed - len(r.Faults)
	if s.Report.Size > 0 {
		r.Percent = min(100, 100*s.Report.Read/s.Report.Size)
	}
	return r
}

// show serves the page.
func (p *Pages) show(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	b := body{CSRF: page.Token(r), Path: importing.MayName(who) == nil, Most: core.ByteSize(importing.MaxUpload)}
	every := 0
	for _, s := range p.o.Imports.List() {
		row := rowOf(s)
		if s.State == report.Running {
			b.Running, every = &row, 1
			continue
		}
		b.Past = append(b.Past, row)
	}
	return p.frame.Show(w, r, http.StatusOK, "import", page.View{Title: "Import conversations", In: "chats", Every: every, Still: b.Running == nil, Body: b})
}

// start starts an import and leads back to the page.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) error {
	said := page.Note("The import runs. This page shows how far it is.")
	if err := p.begin(r); err != nil {
		if core.KindOf(err) == core.Other {
			return err
		}
		said = page.Flash{Kind: "bad", Text: page.Sentence(core.TextOf(err))}
	}
	p.frame.SetFlash(w, r, said)
	return p.frame.Away(w, r, Path)
}

// begin reads the form: a path, or a file.
func (p *Pages) begin(r *http.Request) error {
	who, _ := page.Principal(r)
	form, ok := page.Parts(r)
	if !ok {
		return core.Errorf(core.Invalid, "the form holds no file")
	}
	var u importing.Upload
	defer u.Close()
	sent := false
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return core.Errorf(core.Invalid, "the form did not arrive whole")
		}
		if part.FormName() == "path" {
			text, err := io.ReadAll(io.LimitReader(part, 4096))
			if err != nil {
				return core.Errorf(core.Invalid, "the form did not arrive whole")
			}
			u.Order.Path = strings.TrimSpace(string(text))
			continue
		}
		if part.FormName() == "file" && part.FileName() == "" {
			continue // none was chosen
		}
		sent = sent || part.FileName() != ""
		if err := u.Take(part, p.o.Temp); err != nil {
			return err
		}
	}
	if u.Order.Path == "" {
		if !sent {
			return core.Errorf(core.Invalid, "choose a file, or name a path")
		}
		_, err := u.Start(r.Context(), p.o.Imports, who)
		return err
	}
	if err := importing.MayName(who); err != nil {
		return err
	}
	if !filepath.IsAbs(u.Order.Path) {
		return core.Errorf(core.Invalid, "the path must be absolute: it begins with /")
	}
	_, err := p.o.Imports.Start(r.Context(), u.Order, importing.Terms(who), who.Actor())
	return err
}

func (p *Pages) stop(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Note("The import stops after the current conversation. Import the same file again to go on."), Path, p.o.Imports.Stop(r.Context(), r.PathValue("id"), by)
}
