package operations

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/charts"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/usage"
)

// A chartSpan is a time that charts show.
type chartSpan struct {
	Key, Label string
	step       time.Duration
	n          int
	name, mark string        // layouts of a step's time, and of those below the chart
	every      time.Duration // how far these are apart
}

var chartSpans = []chartSpan{
	{"1h", "1 hour", 5 * time.Minute, 12, "15:04", "15:04", 15 * time.Minute},
	{"24h", "24 hours", time.Hour, 24, "15:04", "15:04", 6 * time.Hour},
	{"7d", "7 days", 6 * time.Hour, 28, "2 Jan 15:04", "Mon", 24 * time.Hour},
	{"30d", "30 days", 24 * time.Hour, 30, "2 Jan", "2 Jan", 7 * 24 * time.Hour},
}

// of returns the span as it is drawn of c, in the reader's zone.
func (s chartSpan) of(c usage.Chart, zone *time.Location) charts.Span {
	return charts.Span{From: c.From, Step: c.Step, N: s.n, Zone: zone, Name: s.name, Mark: s.mark, Every: s.every}
}

const (
	maxClasses  = 64
	chartSeries = 5 // in one chart; the rest is summed up
)

// largest returns the largest series with a name, each with its look, and the rest
// summed up.
func largest(c usage.Chart, name string, label func(string) string, looks map[string]charts.Look) (list []charts.Series) {
	for _, of := range keys(c, name) {
		if s := c.Series[name+"|"+of]; c.Total(name+"|"+of) > 0 {
			list = append(list, charts.Series{Name: label(of), Look: looks[of], Values: s})
		}
	}
	core.Sort(list, func(a, b charts.Series) int { return cmp.Compare(b.Total(), a.Total()) })
	if len(list) <= chartSeries {
		return list
	}
	rest := charts.Series{Name: "others", Look: charts.Others, Values: make([]int64, c.Len())}
	for _, s := range list[chartSeries-1:] {
		for i, v := range s.Values {
			rest.Values[i] += v
		}
	}
	return append(list[:chartSeries-1:chartSeries-1], rest)
}

// keys returns what the series with one of these names are of, sorted.
func keys(c usage.Chart, names ...string) []string {
	found := map[string]bool{} // at most one for each series
	for series := range c.Series {
		if name, of, ok := strings.Cut(series, "|"); ok && slices.Contains(names, name) {
			found[of] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// graphs returns the charts of a time span, those without values last.
func (p *modelPages) graphs(c usage.Chart, span charts.Span, names page.Names) (all []charts.Chart) {
	self := func(s string) string { return s }
	person := func(id string) string { return personName(names, id) }
	var known []string
	for _, m := range p.o.Models.Models() {
		known = append(known, m.Name)
	}
	bots, models := charts.Named(nil, keys(c, "received")), charts.Named(known, keys(c, "tokens", "usd"))
	users := charts.Numbered(keys(c, "user_tokens", "user_usd"))
	tokens, dollars := charts.Counted("tokens", page.Grouped), charts.Money(core.Dollars)
	durations := charts.Durations(func(ms int64) string { return page.Brief(time.Duration(ms) * time.Millisecond) })
	took := charts.Lines("took", "How long an answer took", span, p.quantiles(c, span.N), durations)
	took.Note = "Without the time that it waited for people."
	waited, n := waits(c, span.N)
	waits := charts.Lines("waited", "How long answers waited for people", span, waited, durations)
	if n > 0 {
		waits.Note = "Mean of " + page.Count(int(n), "answer", "answers") + " with approvals or questions."
	}
	all = []charts.Chart{
		charts.Stacked("received", "Messages received", span, largest(c, "received", botName, bots), charts.Counted("messages", page.Grouped)),
		charts.Stacked("answers", "Answers", span, outcomes(c, span.N), charts.Counted("answers", page.Grouped)),
		took, waits,
		charts.Stacked("errors", "What went wrong", span, wrongs(c, span.N), charts.Counted("failures", page.Grouped)),
		charts.Stacked("tokens", "Tokens by model", span, largest(c, "tokens", self, models), tokens),
		charts.Stacked("usd", "Cost by model", span, largest(c, "usd", self, models), dollars),
		charts.Stacked("people", "Tokens by person", span, largest(c, "user_tokens", person, users), tokens),
		charts.Stacked("people-usd", "Cost by person", span, largest(c, "user_usd", person, users), dollars),
	}
	core.Sort(all, func(a, b charts.Chart) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func rank(c charts.Chart) int {
	if c.Empty() {
		return 1
	}
	return 0
}

// outcomes returns how runs ended.
func outcomes(c usage.Chart, n int) []charts.Series {
	return summedUp(c, n, []outcome{
		{charts.Series{Name: "answered", Look: charts.Answered}, []string{"runs|done"}},
		{charts.Series{Name: "stopped", Look: charts.Stopped}, []string{"runs|aborted"}},
		{charts.Series{Name: "failed", Look: charts.Failed}, []string{"runs|error"}},
	})
}

// wrongs returns the kinds of failures, each summed up over all bots.
func wrongs(c usage.Chart, n int) []charts.Series {
	return summedUp(c, n, []outcome{
		{charts.Series{Name: "answers that failed", Look: charts.Failed}, []string{"runs|error"}},
		{charts.Series{Name: "messages given up", Look: charts.GivenUp}, []string{"dead|"}},
		{charts.Series{Name: "replies that failed or are in doubt", Look: charts.Doubtful}, []string{"unsent|"}},
	})
}

// An outcome is a series, and the prefixes of what is summed up in it.
type outcome struct {
	charts.Series
	prefixes []string
}

// summedUp returns those series that are not zero.
func summedUp(c usage.Chart, n int, of []outcome) (list []charts.Series) {
	for _, o := range of {
		o.Values = make([]int64, n)
		for series, values := range c.Series {
			if !slices.ContainsFunc(o.prefixes, func(p string) bool { return strings.HasPrefix(series, p) }) {
				continue
			}
			for i, v := range values {
				o.Values[i] += v
			}
		}
		if o.Total() > 0 {
			list = append(list, o.Series)
		}
	}
	return list
}

// waits returns the mean time in which answers waited for users, in milliseconds, and
// how many did.
func waits(c usage.Chart, steps int) (list []charts.Series, n int64) {
	mean, runs := charts.Series{Name: "mean", Look: charts.Waited, Values: make([]int64, steps)}, make([]int64, steps)
	for series, values := range c.Series {
		for i, v := range values {
			if strings.HasPrefix(series, "waited_ms|") {
				mean.Values[i] += v
			} else if strings.HasPrefix(series, "waited_runs|") {
				runs[i] += v
			}
		}
	}
	for i, r := range runs {
		if n += r; r > 0 {
			mean.Values[i] = max(1, mean.Values[i]/r)
		}
	}
	if n == 0 {
		return nil, 0
	}
	return []charts.Series{mean}, n
}

// botName returns the label of a bot.
func botName(s string) string {
	if s == core.APIBot {
		return page.Platform(s)
	}
	return s
}

// personName returns the name of the user that a series belongs to.
func personName(names page.Names, id string) string {
	user, err := strconv.ParseInt(id, 10, 64)
	switch {
	case err != nil:
		return "Others"
	case user == 0:
		return "People who were forgotten"
	}
	return names.Of(user)
}

// A botUse is one bot's figures of a time.
type botUse struct {
	Name, Received, Answered, Failed, Tokens, Cost string
	n                                              int64
}

// byBot returns the figures of each bot, the busiest first.
func byBot(c usage.Chart) (list []botUse) {
	bots := map[string]bool{} // at most one for each series
	for series := range c.Series {
		name, bot, _ := strings.Cut(series, "|")
		if name == "received" || strings.HasPrefix(name, "bot_") {
			bots[bot] = true
		}
	}
	for bot := range bots {
		u := botUse{Name: botName(bot), Received: page.Grouped(c.Total("received|" + bot)), Answered: page.Grouped(c.Total("bot_done|" + bot)), Failed: page.Grouped(c.Total("bot_error|" + bot)),
			Tokens: page.Grouped(c.Total("bot_tokens|" + bot)), Cost: core.Dollars(c.Total("bot_usd|" + bot)), n: c.Total("received|"+bot) + c.Total("bot_done|"+bot)}
		list = append(list, u)
	}
	core.Sort(list, func(a, b botUse) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.Name, b.Name)) })
	return page.Head(list, maxPeople)
}

// quantiles returns p50 and p95 of each step, in milliseconds.
func (p *modelPages) quantiles(c usage.Chart, n int) []charts.Series {
	half := charts.Series{Name: "half within (p50)", Look: charts.Half, Values: make([]int64, n)}
	most := charts.Series{Name: "95 of 100 within (p95)", Look: charts.Most, Values: make([]int64, n)}
	counts := make([]int64, classes(c))
	any := false
	for i := range n {
		for k := range counts {
			counts[k] = 0
			if s := c.Series[fmt.Sprintf("took|%d", k)]; s != nil {
				counts[k] = s[i]
			}
		}
		half.Values[i] = p.o.Quantile(counts, .5).Milliseconds()
		most.Values[i] = p.o.Quantile(counts, .95).Milliseconds()
		any = any || half.Values[i] > 0
	}
	if !any {
		return nil
	}
	return []charts.Series{half, most}
}

// classes returns how many classes of durations a chart counts answers in.
func classes(c usage.Chart) (n int) {
	for series := range c.Series {
		if class, ok := strings.CutPrefix(series, "took|"); ok {
			if k, err := strconv.Atoi(class); err == nil && k < maxClasses {
				n = max(n, k+1)
			}
		}
	}
	return n
}
