// Package reports is the panel's page of crashes and errors: how the last runs of the
// gateway ended, and the kinds of faults in its log.
package reports

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core/report"
)

const (
	path = "/admin/reports"
	name = "Errors and crashes"

	runsShown   = 20
	faultsShown = 100
	hint        = 24 * time.Hour // for which the overview shows a crash
)

// Reports reads what is recorded (report.Store).
type Reports interface {
	Last() (report.Crash, bool)
	Runs(ctx context.Context, limit int) ([]report.Run, error)
	Faults(ctx context.Context, limit int) ([]report.Fault, error)
}

// Options for New. Without Reports there is no page.
type Options struct{ Reports Reports }

// Pages is the page, and the overview's answer.
type Pages struct {
	frame *page.Frame
	o     Options
}

//go:embed templates/*.html
var files embed.FS

// New registers the page with f, below the audit log.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{f, o}
	if o.Reports == nil {
		return p
	}
	f.Templates(files, template.FuncMap{"words": words})
	f.Page("GET "+path, p.show)
	f.Below("audit", page.Item{Path: path, Label: name})
	return p
}

// Answer reports a crash of the last run, for the overview; false where there was none, or
// it was found a day ago.
func (p *Pages) Answer() (a page.Answer, ok bool) {
	if p.o.Reports == nil {
		return a, false
	}
	last, crashed := p.o.Reports.Last()
	if !crashed || p.frame.Clock.Now().Sub(last.Found) > hint {
		return a, false
	}
	why := "It was killed, ran out of memory, or crashed: the log of the service manager has its last lines."
	if last.Restarted {
		why = "The machine has restarted since."
	}
	return page.Answer{Key: "crash", Question: "Did the gateway keep running?", Tone: "warn", Short: "a run of the gateway did not end properly",
		Answer: "No: a run did not end properly. " + why, Detail: []page.Detail{{Text: "It was seen last on ", At: last.Alive, Then: "."}}, Path: path, Link: name}, true
}

type body struct {
	Lede   string
	Runs   page.Part[[]report.Run]
	Faults page.Part[[]report.Fault]
	More   bool // further kinds of errors are not shown
}

// show shows GET /admin/reports.
func (p *Pages) show(w http.ResponseWriter, r *http.Request) error {
	b := body{
		Runs:   page.Load(r.Context(), p.frame, "The runs", func(ctx context.Context) ([]report.Run, error) { return p.o.Reports.Runs(ctx, runsShown) }),
		Faults: page.Load(r.Context(), p.frame, "The errors", func(ctx context.Context) ([]report.Fault, error) { return p.o.Reports.Faults(ctx, faultsShown+1) }),
	}
	crashes := 0
	for _, x := range b.Runs.Value {
		if x.Status == report.Crashed {
			crashes++
		}
	}
	kinds := page.Count(len(b.Faults.Value), "kind of error", "kinds of errors")
	if b.More = page.Cut(&b.Faults.Value, faultsShown) > 0; b.More {
		kinds = "more than " + strconv.Itoa(faultsShown) + " kinds of errors"
	}
	if b.Lede = page.Count(crashes, "crash", "crashes") + " in the last " + page.Count(len(b.Runs.Value), "run", "runs") + ", " + kinds + " in 90 days."; b.Runs.Broken != "" || b.Faults.Broken != "" {
		b.Lede = "Part of the record can’t be read right now."
	}
	return p.frame.Show(w, r, http.StatusOK, "reports", page.View{Title: name, In: "audit", Every: 60, Body: b})
}

// words returns what a fault is about, as words in a fixed order.
func words(context map[string]string) (list []string) {
	for key, value := range context {
		list = append(list, key+" "+value)
	}
	slices.Sort(list)
	return list
}
