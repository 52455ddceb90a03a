package operations

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/usage"
)

// chartSpans are the time spans that charts show, in equal steps.
var chartSpans = []struct {
	Key, Label string
	step       time.Duration
	n          int
	layout     string
}{
	{"1h", "1 hour", 5 * time.Minute, 12, "15:04"},
	{"24h", "24 hours", time.Hour, 24, "15:04"},
	{"7d", "7 days", 6 * time.Hour, 28, "2 Jan 15:04"},
	{"30d", "30 days", 24 * time.Hour, 30, "2 Jan"},
}

// The drawing's size, in its own units.
const (
	chartWide, chartHigh = 640, 160
	maxClasses           = 64
	chartLines           = 5 // series in one chart; the rest is summed up
)

// A graph is one chart as it is drawn, with a table of the same values.
type graph struct {
	Key, Title, Total string
	Max               string // the value of the topmost line
	First, Last       string // the time of the first and of the last step
	Legend            []string
	Bars              []bar
	Lines             []string // points of lines, in the order of Legend
	Rows              []graphRow
}

type bar struct {
	Class      int
	X, Y, W, H string
	Title      string
}

type graphRow struct {
	When  string
	Cells []string
}

// A strand is one series of a graph.
type strand struct {
	name   string
	values []int64
}

// strands returns the largest series with a name, the rest summed up.
func strands(c usage.Chart, name string, label func(string) string) (list []strand) {
	for _, series := range slices.Sorted(maps.Keys(c.Series)) {
		if what, ok := strings.CutPrefix(series, name+"|"); ok && c.Total(series) > 0 {
			list = append(list, strand{label(what), c.Series[series]})
		}
	}
	sum := func(s strand) (n int64) {
		for _, v := range s.values {
			n += v
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b strand) int { return cmp.Compare(sum(b), sum(a)) })
	if len(list) <= chartLines {
		return list
	}
	rest := strand{"others", make([]int64, c.Len())}
	for _, s := range list[chartLines-1:] {
		for i, v := range s.values {
			rest.values[i] += v
		}
	}
	return append(list[:chartLines-1:chartLines-1], rest)
}

// stacked draws strands upon one another.
func stacked(key, title string, c usage.Chart, n int, layout string, list []strand, word func(int64) string) graph {
	g := graph{Key: key, Title: title}
	top, all := int64(0), int64(0)
	for i := range n {
		sum := int64(0)
		for _, s := range list {
			sum += s.values[i]
		}
		top, all = max(top, sum), all+sum
	}
	g.Total = word(all)
	g.frame(c, n, layout, list, word)
	if top == 0 {
		return g
	}
	g.Max = word(top)
	wide := float64(chartWide) / float64(n)
	for i := range n {
		y := float64(chartHigh)
		for k, s := range list {
			if s.values[i] == 0 {
				continue
			}
			h := float64(s.values[i]) / float64(top) * chartHigh
			y -= h
			g.Bars = append(g.Bars, bar{k, px(float64(i)*wide + wide*.1), px(y), px(wide * .8), px(max(h, 1)), stepName(c, i, layout) + ", " + s.name + ": " + word(s.values[i])})
		}
	}
	return g
}

// lines draws strands side by side; a zero is a gap.
func lines(key, title string, c usage.Chart, n int, layout string, list []strand, word func(int64) string) graph {
	g := graph{Key: key, Title: title}
	top := int64(0)
	for _, s := range list {
		top = max(top, slices.Max(s.values))
	}
	g.frame(c, n, layout, list, word)
	if top == 0 {
		return g
	}
	g.Max = word(top)
	wide := float64(chartWide) / float64(n)
	for k, s := range list {
		var points []string
		for i, v := range s.values {
			if v == 0 {
				continue
			}
			x, y := float64(i)*wide+wide/2, chartHigh-float64(v)/float64(top)*(chartHigh-4)
			points = append(points, px(x)+","+px(y))
			g.Bars = append(g.Bars, bar{k, px(x - 3), px(y - 3), "6", "6", stepName(c, i, layout) + ", " + s.name + ": " + word(v)})
		}
		g.Lines = append(g.Lines, strings.Join(points, " "))
	}
	return g
}

func (g *graph) frame(c usage.Chart, n int, layout string, list []strand, word func(int64) string) {
	g.First, g.Last = stepName(c, 0, layout), stepName(c, n-1, layout)
	for _, s := range list {
		g.Legend = append(g.Legend, s.name)
	}
	for i := range n {
		row := graphRow{When: stepName(c, i, layout)}
		any := false
		for _, s := range list {
			row.Cells = append(row.Cells, word(s.values[i]))
			any = any || s.values[i] != 0
		}
		if any {
			g.Rows = append(g.Rows, row)
		}
	}
}

func stepName(c usage.Chart, i int, layout string) string {
	return c.From.Add(time.Duration(i) * c.Step).UTC().Format(layout)
}

func px(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// graphs returns the charts of a time span.
func (p *modelPages) graphs(c usage.Chart, n int, layout string, names page.Names) []graph {
	self := func(s string) string { return s }
	state := func(s string) string {
		return cmp.Or(map[string]string{"done": "answered", "aborted": "stopped"}[s], "failed")
	}
	person := func(id string) string { return personName(names, id) }
	return []graph{
		stacked("received", "Messages received", c, n, layout, strands(c, "received", botName), page.Grouped),
		stacked("answers", "Answers", c, n, layout, strands(c, "runs", state), page.Grouped),
		lines("took", "How long an answer took", c, n, layout, p.quantiles(c, n), func(ms int64) string { return page.Brief(time.Duration(ms) * time.Millisecond) }),
		stacked("errors", "What went wrong", c, n, layout, wrongs(c, n), page.Grouped),
		stacked("tokens", "Tokens by model", c, n, layout, strands(c, "tokens", self), page.Grouped),
		stacked("usd", "Cost by model", c, n, layout, strands(c, "usd", self), page.Dollars),
		stacked("people", "Tokens by person", c, n, layout, strands(c, "user_tokens", person), page.Grouped),
		stacked("people-usd", "Cost by person", c, n, layout, strands(c, "user_usd", person), page.Dollars),
	}
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

// wrongs returns the kinds of failures, each summed up over all bots.
func wrongs(c usage.Chart, n int) (list []strand) {
	for _, sort := range []struct{ series, name string }{
		{"runs|error", "answers that failed"}, {"dead|", "messages given up"}, {"unsent|", "replies that failed or are in doubt"},
	} {
		s := strand{sort.name, make([]int64, n)}
		for series, values := range c.Series {
			if !strings.HasPrefix(series, sort.series) {
				continue
			}
			for i, v := range values {
				s.values[i] += v
			}
		}
		if slices.Max(s.values) > 0 {
			list = append(list, s)
		}
	}
	return list
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
			Tokens: page.Grouped(c.Total("bot_tokens|" + bot)), Cost: page.Dollars(c.Total("bot_usd|" + bot)), n: c.Total("received|"+bot) + c.Total("bot_done|"+bot)}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b botUse) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.Name, b.Name)) })
	return page.Head(list, maxPeople)
}

// quantiles returns p50 and p95 of each step, in milliseconds.
func (p *modelPages) quantiles(c usage.Chart, n int) []strand {
	half, most := strand{"half within (p50)", make([]int64, n)}, strand{"95 of 100 within (p95)", make([]int64, n)}
	counts := make([]int64, classes(c))
	any := false
	for i := range n {
		for k := range counts {
			counts[k] = 0
			if s := c.Series[fmt.Sprintf("took|%d", k)]; s != nil {
				counts[k] = s[i]
			}
		}
		half.values[i] = p.o.Quantile(counts, .5).Milliseconds()
		most.values[i] = p.o.Quantile(counts, .95).Milliseconds()
		any = any || half.values[i] > 0
	}
	if !any {
		return nil
	}
	return []strand{half, most}
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
