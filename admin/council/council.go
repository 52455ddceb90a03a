// Package council is the panel's pages of councils of several models: figures and
// questions, how one was answered, and the domains.
package council

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/council/ledger"
)

const (
	path        = "/admin/council"
	queryPath   = path + "/queries/"
	domainsPath = path + "/domains"

	shown = 50                  // questions
	reach = 30 * 24 * time.Hour // of the figures
)

// Options for New. Without Store there are no pages.
type Options struct {
	Store *ledger.Store
	// Pick stores which answer was picked, and shows it in the chat (why.Picks).
	Pick func(ctx context.Context, user int64, query, model string) (ledger.Picked, error)
	// Seats returns the members of the council as it is now, in their order, and its judge; "": a
	// member judges. Without a council there are none.
	Seats func() (members []string, judge string)
}

// Pages are the pages of councils.
type Pages struct {
	frame *page.Frame
	o     Options
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f, below the page of the models.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{f, o}
	if o.Store == nil {
		return p
	}
	f.Templates(files, template.FuncMap{"times": times, "score": score, "percent": func(v float64) string { return percent(&v) }, "cost": cost, "queryURL": queryURL})
	f.Page("GET "+path, p.overview)
	f.Page("GET "+queryPath+"{id}", p.query)
	f.Post("POST "+queryPath+"{id}/pick", p.pick)
	f.Page("GET "+domainsPath, p.domains)
	f.Below("models", page.Item{Path: path, Label: "Council"})
	f.Below("models", page.Item{Path: domainsPath, Label: "Domains"})
	return p
}

func percent(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100**v)
}

func score(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *v)
}

func times(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f times", *v)
}

func cost(micro *int64) string {
	if micro == nil {
		return "not known"
	}
	return core.Dollars(*micro)
}

func queryURL(id string) string { return queryPath + url.PathEscape(id) }

type overviewBody struct {
	Lede    string
	Figures page.Part[ledger.Analysis]
	Models  page.Part[[]modelRow]
	Queries page.Part[[]ledger.View]
}

// A modelRow is a model with the curve of its score.
type modelRow struct {
	ledger.Model
	Member bool // of the council, as it is now
	Judge  bool
	Known  bool // there are figures
	Rate   string
	Best   []ledger.DomainRate // at most three, the most reliable first
	Points string              // of the curve, in a box of 120 × 24; "" below ledger.MinCurve outcomes
	Curve  string              // the same as text
}

// overview shows GET /admin/council.
func (p *Pages) overview(w http.ResponseWriter, r *http.Request) error {
	ctx, since := r.Context(), p.frame.Clock.Now().UTC().Add(-reach)
	b := overviewBody{
		Figures: page.Load(ctx, p.frame, "The figures", func(ctx context.Context) (ledger.Analysis, error) { return p.o.Store.Analyze(ctx, since) }),
		Models:  page.Load(ctx, p.frame, "The models", func(ctx context.Context) ([]modelRow, error) { return p.models(ctx, since) }),
		Queries: page.Load(ctx, p.frame, "The questions", func(ctx context.Context) ([]ledger.View, error) {
			list, _, err := p.o.Store.Queries(ctx, ledger.Filter{Limit: shown})
			return list, err
		}),
	}
	n, disputes := 0, 0
	for _, l := range b.Figures.Value.Levels {
		n, disputes = n+l.Queries, disputes+l.Disputes
	}
	if b.Lede = page.Count(n, "question was", "questions were") + " asked in 30 days, " + page.Count(disputes, "was", "were") + " disputed."; b.Figures.Broken != "" {
		b.Lede = "How many questions were asked can’t be read right now."
	}
	return p.frame.Show(w, r, http.StatusOK, "council", page.View{Title: "Council", In: "models", Every: 60, Body: b})
}

// models returns the members in their order, the judge, and the other models of which there
// are figures.
func (p *Pages) models(ctx context.Context, since time.Time) ([]modelRow, error) {
	list, err := p.o.Store.Models(ctx)
	if err != nil {
		return nil, err
	}
	rows := p.seats()
	for _, m := range list {
		i := slices.IndexFunc(rows, func(r modelRow) bool { return r.ID == m.ID })
		if i < 0 {
			i, rows = len(rows), append(rows, modelRow{})
		}
		rows[i].Model, rows[i].Known, rows[i].Rate, rows[i].Best = m, true, percent(m.WinRate), best(m.Domains)
		if m.WinRate == nil {
			continue
		}
		changes, err := p.o.Store.Reliability(ctx, m.ID, since)
		if err != nil {
			return nil, err
		}
		rows[i].Points, rows[i].Curve = curve(m.Score, changes)
	}
	return rows, nil
}

// seats returns the members and the judge without figures.
func (p *Pages) seats() (rows []modelRow) {
	members, judge := p.o.Seats()
	for _, id := range members {
		rows = append(rows, modelRow{Model: ledger.Model{ID: id}, Member: true, Judge: id == judge})
	}
	if judge != "" && !slices.Contains(members, judge) {
		rows = append(rows, modelRow{Model: ledger.Model{ID: judge}, Judge: true})
	}
	return rows
}

func best(list []ledger.DomainRate) (out []ledger.DomainRate) {
	for _, d := range list {
		at := len(out)
		for at > 0 && out[at-1].Reliability < d.Reliability {
			at--
		}
		out = append(out[:at], append([]ledger.DomainRate{d}, out[at:]...)...)
		out = out[:min(len(out), 3)]
	}
	return out
}

// curve returns the points of a score over its changes, and the same as text.
func curve(now int, changes []ledger.Change) (points, text string) {
	values := []int{now}
	if len(changes) > 0 {
		values = []int{changes[0].Before}
	}
	for _, c := range changes {
		values = append(values, c.After)
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	var b strings.Builder
	for i, v := range values {
		x, y := 0.0, 12.0
		if len(values) > 1 {
			x = 120 * float64(i) / float64(len(values)-1)
		}
		if high > low {
			y = 2 + 20*float64(high-v)/float64(high-low)
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	if len(values) == 1 {
		b.WriteString("120.0,12.0")
	}
	return strings.TrimSpace(b.String()), fmt.Sprintf("Score from %d to %d in 30 days, between %d and %d", values[0], values[len(values)-1], low, high)
}

type domainsBody struct {
	Lede string
	Tree page.Part[ledger.Ontology]
}

// domains shows GET /admin/council/domains.
func (p *Pages) domains(w http.ResponseWriter, r *http.Request) error {
	b := domainsBody{Tree: page.Load(r.Context(), p.frame, "The domains", p.o.Store.Ontology)}
	if b.Lede = page.Count(len(b.Tree.Value.Domains), "domain", "domains") + ", " + page.Count(len(b.Tree.Value.Candidates), "candidate", "candidates") + "."; b.Tree.Broken != "" {
		b.Lede = "The domains can’t be shown right now."
	}
	return p.frame.Show(w, r, http.StatusOK, "councildomains", page.View{Title: "Domains", In: "models", Body: b})
}
