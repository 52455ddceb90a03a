// Package daily is the panel's pages about daily agents: when each runs next, how its runs
// went, and files that cannot be used.
package daily

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	agents "gatehouse/core/schedule/daily"
)

const (
	dailyPath  = "/admin/daily"
	maxHistory = 50 // runs of the page of one agent
)

type (
	// Lists are the agents and their runs (schedule.Scheduler).
	Lists interface {
		List(ctx context.Context) ([]agents.Line, []agents.Fault, error)
		Line(ctx context.Context, name string) (agents.Line, error)
		History(ctx context.Context, name string, limit int) ([]agents.Run, error)
	}
	// Acts change them. A run that is not to be started is core.Conflict.
	Acts interface {
		Start(ctx context.Context, name, date string, force bool, by core.Actor) (agents.Run, error)
		Switch(ctx context.Context, name string, on bool, by core.Actor) error
		Add(ctx context.Context, sample string, by core.Actor) error
	}
)

// Options for New. Without Lists there are no pages.
type Options struct {
	Lists Lists
	Acts  Acts
}

// Links are what other pages of the panel offer to these.
type Links struct {
	Chat func(id string) string // address of a conversation; nil: there are no such pages
}

type pages struct {
	frame *page.Frame
	o     Options
	links Links
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f, below the page of the agents.
func New(f *page.Frame, o Options, l Links) {
	if o.Lists == nil {
		return
	}
	p := &pages{f, o, l}
	f.Templates(files, nil)
	f.Page("GET "+dailyPath, p.list)
	f.Page("GET "+dailyPath+"/{name}", p.one)
	f.Post("POST "+dailyPath+"/{name}/{verb}", p.act)
	f.Below("agents", page.Item{Path: dailyPath, Label: "Daily agents"})
}

type listBody struct {
	CSRF    string
	Lede    string
	Lines   []row
	Broken  string
	Faults  []agents.Fault
	Samples []sample
}

type sample struct{ Name, Label string }

// A row is an agent as the pages show it.
type row struct {
	agents.Line
	URL, Every string
	State      *state // of the newest run
}

// A state is a run's result as a pill.
type state struct{ Tone, Word string }

func (p *pages) list(w http.ResponseWriter, r *http.Request) error {
	type found struct {
		lines  []agents.Line
		faults []agents.Fault
	}
	part := page.Load(r.Context(), p.frame, "The daily agents", func(ctx context.Context) (f found, err error) {
		f.lines, f.faults, err = p.o.Lists.List(ctx)
		return f, err
	})
	b := listBody{CSRF: page.Token(r), Broken: part.Broken, Faults: part.Value.faults}
	on, failed := 0, 0
	for _, l := range part.Value.lines {
		b.Lines = append(b.Lines, rowOf(l))
		if l.Enabled {
			on++
		}
		if l.Last != nil && l.Last.Result == agents.Failed {
			failed++
		}
	}
	for _, name := range agents.Samples() {
		if !b.has(name) {
			b.Samples = append(b.Samples, sample{name, strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", " ")})
		}
	}
	b.Lede = lede(len(b.Lines), on, failed, len(b.Faults))
	return p.frame.Show(w, r, http.StatusOK, "daily", page.View{Title: "Daily agents", In: "agents", Topics: []core.Topic{core.TopicDaily}, Body: b})
}

// has reports whether there is a file of that name.
func (b *listBody) has(name string) bool {
	return slices.ContainsFunc(b.Lines, func(r row) bool { return r.Name == name }) ||
		slices.ContainsFunc(b.Faults, func(f agents.Fault) bool { return f.File == agents.Dir+"/"+name+".md" })
}

func lede(all, on, failed, faults int) string {
	var wants []string
	if faults > 0 {
		wants = append(wants, page.Count(faults, "file can’t be used", "files can’t be used"))
	}
	if failed > 0 {
		wants = append(wants, page.Count(failed, "agent failed last time", "agents failed last time"))
	}
	switch {
	case len(wants) > 0:
		return page.Sentence(strings.Join(wants, ", "))
	case all == 0:
		return "Agents that run once a day and write to the vault."
	}
	return page.Count(on, "agent runs", "agents run") + " by the clock."
}

func rowOf(l agents.Line) row {
	r := row{Line: l, URL: dailyPath + "/" + url.PathEscape(l.Name), Every: l.Rule.String() + " " + l.Rule.Zone().String()}
	if l.Last != nil {
		s := stateOf(*l.Last)
		r.State = &s
	}
	return r
}

// stateOf returns a run's result in words.
func stateOf(r agents.Run) state {
	switch r.Result {
	case "":
		return state{"note", "Running"}
	case agents.Completed:
		return state{"good", "Written"}
	case agents.CompletedNoOutput:
		return state{"idle", "Nothing written"}
	case agents.Skipped:
		return state{"idle", "Skipped"}
	}
	return state{"bad", "Failed"}
}

type oneBody struct {
	CSRF   string
	Agent  row
	Tools  string
	Sent   string
	Today  string // in the agent's time zone
	Runs   page.Part[[]run]
	Prompt string
}

type run struct {
	agents.Run
	State      state
	Chat, File string // addresses; "" without one
	By         string
}

func (p *pages) one(w http.ResponseWriter, r *http.Request) error {
	l, err := p.o.Lists.Line(r.Context(), r.PathValue("name"))
	if core.KindOf(err) == core.Conflict || core.KindOf(err) == core.Invalid { // the list shows why
		return p.frame.Away(w, r, dailyPath)
	}
	if err != nil {
		return err
	}
	b := oneBody{CSRF: page.Token(r), Agent: rowOf(l), Tools: strings.Join(l.Tools, ", "), Prompt: l.Prompt,
		Today: p.frame.Clock.Now().In(l.Rule.Zone()).Format(time.DateOnly)}
	if l.Deliver != nil {
		b.Sent = l.Deliver.Bot + "/" + l.Deliver.Chat
	}
	b.Runs = page.Load(r.Context(), p.frame, "The runs", func(ctx context.Context) (out []run, err error) {
		list, err := p.o.Lists.History(ctx, l.Name, maxHistory)
		for _, x := range list {
			out = append(out, p.run(x))
		}
		return out, err
	})
	return p.frame.Show(w, r, http.StatusOK, "dailyone", page.View{Title: l.DisplayName, In: "agents", Topics: []core.Topic{core.TopicDaily}, Body: b})
}

func (p *pages) run(x agents.Run) run {
	out := run{Run: x, State: stateOf(x), By: x.Cause}
	switch x.Cause {
	case agents.ByTime:
		out.By = "by the clock"
	case agents.Missed:
		out.By = "made up"
	}
	if x.Session != "" && p.links.Chat != nil {
		out.Chat = p.links.Chat(x.Session)
	}
	if x.Output != "" && slices.Contains(p.frame.Routes(), "GET /admin/search/document") {
		out.File = page.Address("/admin/search/document", map[string]string{"path": x.Output})
	}
	return out
}

// act does what a form asks.
func (p *pages) act(r *http.Request, by core.Actor) (page.Flash, string, error) {
	name, back := r.PathValue("name"), dailyPath
	if r.PostFormValue("from") == "one" && agents.CheckName(name) == nil {
		back += "/" + url.PathEscape(name)
	}
	switch r.PathValue("verb") {
	case "run":
		run, err := p.o.Acts.Start(r.Context(), name, strings.TrimSpace(r.PostFormValue("date")), r.PostFormValue("force") != "", by)
		if err == nil && run.Result == agents.Skipped {
			return page.Note(name + " has been run for " + run.Date + ". On its page it can be run again."), back, nil
		}
		return page.Good(name + " is running for " + run.Date + "."), back, err
	case "enable":
		return page.Good(name + " runs by its schedule from now on."), back, p.o.Acts.Switch(r.Context(), name, true, by)
	case "disable":
		return page.Good(name + " runs only when you start it."), back, p.o.Acts.Switch(r.Context(), name, false, by)
	case "add":
		return page.Good(agents.Dir + "/" + name + ".md is written. Change it as you like."), back, p.o.Acts.Add(r.Context(), name, by)
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such action")
}
