package page

import (
	"html/template"
	"strconv"

	"gatehouse/core/diff"
)

const (
	diffRows = 40       // of a diff, before the rest is folded
	diffSize = 32 << 10 // bytes of a diff on a page, as it is escaped
	rowSize  = 36       // bytes of markup of a row
)

// A DiffView is a diff as a page shows it.
type DiffView struct {
	ID    string // of the folded part
	Label string // for screen readers
	Rows  []DiffRow
	Rest  []DiffRow // folded
	More  int       // lines that are not on the page
	size  int
}

// Size returns about how many bytes v has on a page.
func (v DiffView) Size() int { return v.size }

// A DiffRow is a line of a diff, or a note in its place.
type DiffRow struct {
	Tone  string // added, removed, place or "" for an unchanged line
	Sign  string
	Parts []diff.Part
	Note  string
}

// NewDiff returns d as a page shows it.
func NewDiff(id, label string, d diff.Diff) DiffView {
	v := DiffView{ID: id, Label: label}
	counted := 0
	for _, h := range d.Hunks {
		if h.Old > 1 || h.New > 1 || len(d.Hunks) > 1 {
			v.Rows = append(v.Rows, DiffRow{Tone: "place", Note: "From line " + strconv.Itoa(h.New)})
		}
		for _, l := range h.Lines {
			if v.size += rowSize + len(template.HTMLEscapeString(diff.Visible(l.Text()))) + 7*len(l.Parts); v.size > diffSize && counted > 0 {
				break
			}
			if l.Op != diff.Same {
				counted += max(1, l.Skipped)
			}
			v.Rows = append(v.Rows, rowOf(l))
		}
		if v.size > diffSize {
			break
		}
	}
	v.More = d.Added + d.Removed - counted
	if len(v.Rows) > diffRows+diffRows/4 {
		v.Rows, v.Rest = v.Rows[:diffRows], v.Rows[diffRows:]
	}
	return v
}

var tones = map[string]string{diff.Add: "added", diff.Remove: "removed"}

func rowOf(l diff.Line) DiffRow {
	r := DiffRow{Tone: tones[l.Op], Sign: l.Op, Parts: l.Parts}
	switch {
	case l.Skipped > 0:
		r.Note = Count(l.Skipped, "more line", "more lines")
	case l.Cut > 0:
		r.Note = "… " + Count(l.Cut, "more character", "more characters")
	case l.NoEnd:
		r.Note = " (no newline at the end)"
	}
	return r
}
