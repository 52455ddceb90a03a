package operations

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/charts"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/usage"
)

const (
	modelsPath = "/admin/models"
	maxPeople  = 15 // in the table by person
	modelTest  = 30 * time.Second
)

type (
	// A ModelRow is a configured model.
	ModelRow struct {
		Name   string
		Use    string // "answers", "stands in", "answers guests", "can be chosen"
		Priced bool
		Input  int64 // millionths of a dollar for a million tokens
		Output int64
		Can    []string // tools, images, documents, search …
	}
	// Models are the configured models.
	Models interface {
		Models() []ModelRow
		// Trouble returns why the file of providers is not in use as it is; "" when it is.
		Trouble() string
		// Test calls a model and returns how long its first word took.
		Test(ctx context.Context, name string) (time.Duration, error)
		// Chart are the sums of a time (usage.Rollups.Read).
		Chart(ctx context.Context, step time.Duration, n int, zone *time.Location) (usage.Chart, error)
	}
)

type modelsBody struct {
	CSRF   string
	Lede   string
	Fault  string // of the file of providers
	Models []modelRow
	Spans  []spanLink
	In     string // the time span of the charts
	Zone   string // of the times, "UTC" while the reader's is not known
	Cookie string // that keeps it
	Graphs page.Part[[]charts.Chart]
	Looks  []charts.Look // with a pattern
	People []personUse
	Bots   []botUse
	Today  page.Part[[]usage.Total]
}

// A modelRow is a model with what was measured of it in the time of the charts.
type modelRow struct {
	ModelRow
	Took    string // one answer, on average; "" where there was none
	Waited  string // how long answers also waited for users, on average; "" where none did
	Answers int64
}

type spanLink struct {
	Key, Label string
	Current    bool
}

type personUse struct {
	Name         string
	User         int64
	Tokens, Cost string
	n            int64
}

func (p *modelPages) modelsPage(w http.ResponseWriter, r *http.Request) error {
	ctx, now := r.Context(), p.frame.Clock.Now()
	zone := page.Zone(r)
	b := modelsBody{CSRF: page.Token(r), Zone: zone.String(), Cookie: page.ZoneCookie(r)}
	at := 1
	for i, s := range chartSpans {
		if s.Key == r.URL.Query().Get("span") {
			at = i
		}
	}
	for i, s := range chartSpans {
		b.Spans = append(b.Spans, spanLink{s.Key, s.Label, i == at})
	}
	s := chartSpans[at]
	b.In = "in " + s.Label
	var c usage.Chart
	b.Graphs = page.Load(ctx, p.frame, "The figures", func(ctx context.Context) ([]charts.Chart, error) {
		chart, err := p.o.Models.Chart(ctx, s.step, s.n, zone)
		if err != nil {
			return nil, err
		}
		c = chart
		names := p.users(ctx)
		b.People, b.Bots = byPerson(c, names), byBot(c)
		return p.graphs(c, s.of(c, zone), names), nil
	})
	b.Looks = charts.Patterns(b.Graphs.Value)
	if p.o.Usage != nil {
		b.Today = page.Load(ctx, p.frame, "What was used today", func(ctx context.Context) ([]usage.Total, error) {
			return p.o.Usage(ctx, now.UTC().Truncate(24*time.Hour))
		})
	}
	b.Fault = p.o.Models.Trouble()
	for _, m := range p.o.Models.Models() {
		b.Models = append(b.Models, measured(m, c))
	}
	b.Lede = page.Count(len(b.Models), "model is", "models are") + " configured. "
	if b.Today.Broken != "" {
		b.Lede += b.Today.Broken
	} else {
		b.Lede += strings.TrimSuffix(todayWords(b.Today.Value), ".") + "."
	}
	return p.frame.Show(w, r, http.StatusOK, "models", page.View{Title: "Models and usage", In: "models", Every: 60, Body: b})
}

func measured(m ModelRow, c usage.Chart) modelRow {
	row := modelRow{ModelRow: m, Answers: c.Total("model_done|" + m.Name)}
	if row.Answers > 0 {
		row.Took = page.Brief(time.Duration(c.Total("model_ms|"+m.Name)/row.Answers) * time.Millisecond)
	}
	if n := c.Total("waited_runs|" + m.Name); n > 0 {
		row.Waited = page.Brief(time.Duration(c.Total("waited_ms|"+m.Name)/n)*time.Millisecond) + " waiting for people in " + page.Grouped(n)
	}
	return row
}

func todayWords(rows []usage.Total) string {
	var all usage.Total
	for _, t := range rows {
		all.Calls += t.Calls
		all.Input += t.Input + t.CacheRead + t.CacheWrite
		all.Output += t.Output
		all.MicroUSD += t.MicroUSD
		all.Unpriced += t.Unpriced
	}
	if all.Calls == 0 {
		return "None was called since midnight UTC"
	}
	return "Since midnight UTC: " + page.Grouped(all.Input+all.Output) + " tokens" + page.Price(all.MicroUSD, all.Unpriced)
}

func byPerson(c usage.Chart, names page.Names) (list []personUse) {
	for series := range c.Series {
		id, ok := strings.CutPrefix(series, "user_tokens|")
		if !ok {
			continue
		}
		u := personUse{Name: personName(names, id), n: c.Total(series)}
		u.User, _ = strconv.ParseInt(id, 10, 64) // the others have no number
		u.Tokens, u.Cost = page.Grouped(u.n), core.Dollars(c.Total("user_usd|"+id))
		list = append(list, u)
	}
	core.Sort(list, func(a, b personUse) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.User, b.User)) })
	return page.Head(list, maxPeople)
}

func (p *modelPages) testModel(r *http.Request, _ core.Actor) (page.Flash, string, error) {
	name := r.PostFormValue("model")
	if !slices.ContainsFunc(p.o.Models.Models(), func(m ModelRow) bool { return m.Name == name }) {
		return page.Flash{}, modelsPath, core.Errorf(core.NotFound, "there is no such model")
	}
	ctx, cancel := context.WithTimeout(r.Context(), modelTest)
	defer cancel()
	took, err := p.o.Models.Test(ctx, name)
	if err != nil {
		p.frame.Log.WarnContext(ctx, "model test", "model", name, "err", err)
		if core.KindOf(err) == core.Other {
			err = core.Errorf(core.Busy, "%s returned no valid answer; see the log", name)
		}
		return page.Flash{}, modelsPath, err
	}
	return page.Good(name + " answers; its first word came after " + page.Brief(took) + "."), modelsPath, nil
}

// names returns the names of the configured models.
func (p *modelPages) names() (names []string) {
	if p.o.Models == nil {
		return nil
	}
	for _, m := range p.o.Models.Models() {
		names = append(names, m.Name)
	}
	return names
}
