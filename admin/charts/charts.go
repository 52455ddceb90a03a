// Package charts draws what happened in a time as stacked bars and as lines, each
// with round values at its side, the reader's times below it, and a table of the
// same values.
package charts

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Span is the time that a chart shows, in equal steps.
type Span struct {
	From time.Time
	Step time.Duration
	N    int
	Zone *time.Location // of the reader
	// Name is the layout of the time of one step, Mark of those below the chart, one
	// for each Every. Days are named by their middle: with the change to summer time one
	// may begin an hour early.
	Name, Mark string
	Every      time.Duration
}

// name returns the time of step i.
func (s Span) name(i int) string {
	at := s.From.Add(time.Duration(i) * s.Step)
	if s.Step == 24*time.Hour {
		at = at.Add(s.Step / 2)
	}
	return at.In(s.Zone).Format(s.Name)
}

// marks returns the times below a chart.
func (s Span) marks() (out []Mark) {
	end := s.From.Add(time.Duration(s.N) * s.Step)
	_, east := end.In(s.Zone).Zone()
	shift := time.Duration(east) * time.Second
	at := s.From.UTC().Add(shift).Truncate(s.Every).Add(-shift)
	for ; at.Before(end); at = at.Add(s.Every) {
		if at.Before(s.From) {
			continue
		}
		x := 100 * float64(at.Sub(s.From)) / float64(end.Sub(s.From))
		m := Mark{At: percent(x), Label: at.UTC().Add(shift).Format(s.Mark), Anchor: "middle"}
		switch {
		case x < 4:
			m.Anchor = "start"
		case x > 96:
			m.Anchor = "end"
		}
		out = append(out, m)
	}
	return out
}

// A Series is one row of values, one for each step, with how it is drawn.
type Series struct {
	Name   string
	Look   Look
	Values []int64
}

// Total returns the sum of the values.
func (s Series) Total() (n int64) {
	for _, v := range s.Values {
		n += v
	}
	return n
}

// A Chart is drawn in per cent of its width and height.
type Chart struct {
	Key, Title, Total string
	Unit              string // of the values at the side; "" where they have one
	Note              string // what is not in it; "" for nothing
	Wide              int    // how many bars it has room for
	First, Last       string // the time of the first and of the last step
	Side              []Mark // the values at the side, from the top down
	Below             []Mark // the times
	Groups            []Group
	Rows              []Row
}

// A Mark is a label at the side of a chart or below it.
type Mark struct{ At, Label, Anchor string }

// A Group is what is drawn of one Series.
type Group struct {
	Name  string
	Look  Look
	Bars  []Bar
	Dots  []Dot
	Lines []Line
}

type (
	// A Bar is one step's share.
	Bar struct{ X, Y, H, Title string }
	// A Dot is one step's value on a line.
	Dot struct{ X, Y, Title string }
	// A Line leads from one dot to the next.
	Line struct{ X1, Y1, X2, Y2 string }
	// A Row is one step in the table, with a cell for each Series.
	Row struct {
		When  string
		Cells []string
	}
)

// Empty reports whether there is nothing to draw.
func (c Chart) Empty() bool { return len(c.Groups) == 0 }

// Stacked draws series upon one another.
func Stacked(key, title string, s Span, list []Series, u Unit) Chart {
	c := Chart{Key: key, Title: title, Unit: u.name, Wide: s.N}
	top, all := int64(0), int64(0)
	for i := range s.N {
		sum := int64(0)
		for _, x := range list {
			sum += x.Values[i]
		}
		top, all = max(top, sum), all+sum
	}
	if top == 0 {
		return c
	}
	c.Total = u.Text(all)
	most := c.frame(s, list, top, u)
	below := make([]int64, s.N) // what is drawn of each step
	for _, x := range list {
		g := Group{Name: x.Name, Look: x.Look}
		for i, v := range x.Values {
			if v == 0 {
				continue
			}
			below[i] += v
			y, h := 100-share(below[i], most), max(share(v, most), .7)
			g.Bars = append(g.Bars, Bar{percent(100 * (float64(i) + .1) / float64(s.N)), percent(y), percent(h), hover(s, i, x.Name, u.Text(v))})
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}

// Lines draws series side by side; a zero is a gap.
func Lines(key, title string, s Span, list []Series, u Unit) Chart {
	c := Chart{Key: key, Title: title, Unit: u.name, Wide: s.N}
	top := int64(0)
	for _, x := range list {
		top = max(top, slices.Max(x.Values))
	}
	if top == 0 {
		return c
	}
	most := c.frame(s, list, top, u)
	for _, x := range list {
		g := Group{Name: x.Name, Look: x.Look}
		for i, v := range x.Values {
			if v == 0 {
				continue
			}
			d := Dot{percent(100 * (float64(i) + .5) / float64(s.N)), percent(100 - share(v, most)), hover(s, i, x.Name, u.Text(v))}
			if n := len(g.Dots); n > 0 {
				g.Lines = append(g.Lines, Line{g.Dots[n-1].X, g.Dots[n-1].Y, d.X, d.Y})
			}
			g.Dots = append(g.Dots, d)
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}

// frame sets everything but what is drawn, and returns the value at the top.
func (c *Chart) frame(s Span, list []Series, top int64, u Unit) (most int64) {
	step, n := u.scale(top)
	for i := n; i >= 0; i-- {
		c.Side = append(c.Side, Mark{At: percent(100 * float64(n-i) / float64(n)), Label: u.mark(int64(i)*step, step)})
	}
	c.First, c.Last, c.Below = s.name(0), s.name(s.N-1), s.marks()
	for i := range s.N {
		row, any := Row{When: s.name(i)}, false
		for _, x := range list {
			row.Cells = append(row.Cells, u.Text(x.Values[i]))
			any = any || x.Values[i] != 0
		}
		if any {
			c.Rows = append(c.Rows, row)
		}
	}
	return int64(n) * step
}

func hover(s Span, i int, name, value string) string {
	return s.name(i) + ", " + name + ": " + value
}

func share(v, most int64) float64 { return 100 * float64(v) / float64(most) }

func percent(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + "%" }
