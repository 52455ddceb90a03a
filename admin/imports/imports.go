// Package imports is the panel's page on which conversations of other systems are brought in: a file
// is sent or a path named, the progress is shown, and the report can be downloaded.
package imports

import (
	"context"
	"embed"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/web"
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
	Intake  *importing.Intake
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
	CSRF     string
	Fault    string   // why nothing was imported
	Typed    string   // the path before the fault
	Arriving *arrival // the file that is being received
	Running  *row
	Past     []row
	Path     bool   // a path may be named
	Most     string // the largest upload
}

// An arrival is a file that is being received.
type arrival struct {
	importing.Arrival
	Percent int64
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
	return p.showWith(w, r, http.StatusOK, "", "")
}

func (p *Pages) showWith(w http.ResponseWriter, r *http.Request, status int, typed, fault string) error {
	who, _ := page.Principal(r)
	b := body{CSRF: page.Token(r), Typed: typed, Fault: fault, Path: importing.MayName(who) == nil, Most: core.ByteSize(importing.MaxUpload)}
	every := 0
	for _, s := range p.o.Imports.List() {
		row := rowOf(s)
		if s.State == report.Running {
			b.Running, every = &row, 1
			continue
		}
		b.Past = append(b.Past, row)
	}
	if a, ok := p.o.Intake.Arriving(); ok && b.Running == nil {
		b.Arriving, every = &arrival{Arrival: a}, 1
		if a.Size > 0 {
			b.Arriving.Percent = min(100, 100*a.Read/a.Size)
		}
	}
	return p.frame.Show(w, r, status, "import", page.View{Title: "Import conversations", In: "chats", Every: every, Still: every == 0, Body: b})
}

// start starts an import and leads back to the page. A refusal is an answer with the page itself:
// browsers follow no redirect while they still send the file.
func (p *Pages) start(w http.ResponseWriter, r *http.Request) error {
	path, err := p.begin(w, r)
	if err == nil {
		p.frame.SetFlash(w, r, page.Note("The import runs. This page shows how far it is."))
		return p.frame.Away(w, r, Path)
	}
	told := web.ProblemOf(err)
	if told.Fault.Status >= http.StatusInternalServerError && core.KindOf(err) != core.Busy {
		return err
	}
	return p.showWith(w, r, told.Fault.Status, path, page.Sentence(told.Detail))
}

// begin reads the form, a path or a file, and starts its import. It returns the path.
func (p *Pages) begin(w http.ResponseWriter, r *http.Request) (path string, err error) {
	who, _ := page.Principal(r)
	form, ok := page.Parts(r)
	if !ok {
		return "", core.Errorf(core.Invalid, "the form holds no file")
	}
	u, err := p.o.Intake.Begin(w, r)
	if err != nil {
		return "", err
	}
	defer u.Close()
	sent, err := p.read(form, u)
	if path = u.Order.Path; err != nil {
		return path, err
	}
	switch {
	case path == "" && !sent:
		return "", core.Errorf(core.Invalid, "choose a file, or name a path")
	case path == "":
		_, err = u.Start(r.Context(), p.o.Imports, who)
		return "", err
	}
	if err := importing.MayName(who); err != nil {
		return path, err
	}
	if !filepath.IsAbs(path) {
		return path, core.Errorf(core.Invalid, "the path must be absolute: it begins with /")
	}
	_, err = p.o.Imports.Start(r.Context(), u.Order, importing.Terms(who), who.Actor())
	return path, err
}

// read reads the parts of the form and reports whether a file was among them.
func (p *Pages) read(form *multipart.Reader, u *importing.Upload) (sent bool, err error) {
	whole := core.Errorf(core.Invalid, "the form did not arrive whole")
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			return sent, whole
		}
		if part.FormName() == "path" {
			text, err := io.ReadAll(io.LimitReader(part, 4096))
			if err != nil {
				return sent, whole
			}
			u.Order.Path = strings.TrimSpace(string(text))
			continue
		}
		if part.FormName() == "file" && part.FileName() == "" {
			continue // none was chosen
		}
		sent = sent || part.FileName() != ""
		if err := u.Take(part, p.o.Temp); err != nil {
			return sent, err
		}
	}
}

func (p *Pages) stop(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Note("The import stops after the current conversation. Import the same file again to go on."), Path, p.o.Imports.Stop(r.Context(), r.PathValue("id"), by)
}
