// Package nodes is the panel's page of the gateways that share a database on a server.
package nodes

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core/nodes"
)

const (
	path = "/admin/gateways"
	name = "Gateways"
)

// Options for New.
type Options struct {
	// List returns the gateways; nil: there is no page (nodes.List).
	List func(ctx context.Context) ([]nodes.Node, error)
	// Needed is the newest migration of the database: a gateway whose program has not got it
	// cannot take over.
	Needed int64
}

// Pages is the page, and the overview's answer.
type Pages struct {
	frame *page.Frame
	o     Options
}

//go:embed templates/*.html
var files embed.FS

// New registers the page with f, below the queue.
func New(f *page.Frame, o Options) *Pages {
	p := &Pages{f, o}
	if o.List == nil {
		return p
	}
	f.Templates(files, template.FuncMap{"old": p.old})
	f.Page("GET "+path, p.show)
	f.Below("queue", page.Item{Path: path, Label: name})
	return p
}

// old reports whether n waits in vain, because its program cannot read the database.
func (p *Pages) old(n nodes.Node) bool { return n.Outdated(p.o.Needed) }

// faults returns the names of the gateways that are gone and of those that cannot take over.
func (p *Pages) faults(all []nodes.Node) (gone, old []string) {
	for _, n := range all {
		switch {
		case n.State == nodes.Gone:
			gone = append(gone, n.ID)
		case p.old(n):
			old = append(old, n.ID)
		}
	}
	return gone, old
}

// Answer reports gateways that would not take over, for the overview; false where all are
// well, or there is but one.
func (p *Pages) Answer(ctx context.Context) (a page.Answer, ok bool) {
	if p.o.List == nil {
		return a, false
	}
	all := p.load(ctx)
	a = page.Answer{Key: "gateways", Question: "Are all gateways there?", Tone: "warn", Path: path, Link: name, Broken: all.Broken}
	gone, old := p.faults(all.Value)
	var says []string
	if len(gone) > 0 {
		says = append(says, strings.Join(gone, ", ")+" ended without being stopped, or cannot reach the database.")
		a.Short = page.Count(len(gone), "gateway is", "gateways are") + " gone"
	}
	if len(old) > 0 {
		says = append(says, strings.Join(old, ", ")+" cannot take over: the program is older than the database. Update it.")
		if a.Short == "" {
			a.Short = page.Count(len(old), "gateway", "gateways") + " cannot take over"
		}
	}
	if a.Answer = "No: " + strings.Join(says, " "); all.Broken != "" {
		a.Short = "the gateways can’t be read"
	}
	return a, len(says) > 0 || all.Broken != ""
}

func (p *Pages) load(ctx context.Context) page.Part[[]nodes.Node] {
	return page.Load(ctx, p.frame, "The gateways", p.o.List)
}

type body struct {
	Lede string
	All  page.Part[[]nodes.Node]
}

// show shows GET /admin/gateways.
func (p *Pages) show(w http.ResponseWriter, r *http.Request) error {
	b := body{All: p.load(r.Context())}
	waiting := 0
	for _, n := range b.All.Value {
		if n.State == nodes.Standby && !p.old(n) {
			waiting++
		}
	}
	switch {
	case b.All.Broken != "":
		b.Lede = "Whether a gateway stands by can’t be read right now."
	case waiting > 0:
		b.Lede = page.Count(waiting, "gateway stands", "gateways stand") + " by, and would take over within seconds."
	default:
		b.Lede = "No gateway stands by: if this one ends, nobody is answered until it is started again."
	}
	return p.frame.Show(w, r, http.StatusOK, "nodes", page.View{Title: name, In: "queue", Every: 5, Body: b})
}
