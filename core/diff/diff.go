// Package diff compares two texts and returns what users read of the change: the
// lines that differ with their neighbours, the words that differ in them, and counts.
// It reads no file, and its work and results are bounded.
package diff

import (
	"fmt"
	"strings"

	"gatehouse/core"
)

// Bounds of a comparison.
const (
	context     = 3        // unchanged lines around a change
	maxMiddle   = 1 << 20  // bytes between the first and the last difference, of each text; more are counted only
	maxEdits    = 1000     // lines that differ, before all of the middle counts as replaced
	maxKept     = 400      // lines of a Diff
	maxKeptSize = 36 << 10 // bytes of them, with partSize for each part
	partSize    = 24
	maxLine     = 1000 // bytes of a line
	maxRemoved  = 150  // lines of a removed block that others replace
	maxWords    = 200  // of a line that words are marked in
)

// A Diff is the difference of two texts. The counts are of the whole texts; the hunks
// have at most 400 lines and 36 KiB of them.
type Diff struct {
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Hunks   []Hunk `json:"hunks,omitempty"`
	More    int    `json:"more,omitempty"` // added and removed lines that Hunks leave out
}

// A Hunk is a group of changes with the lines around them.
type Hunk struct {
	Old   int    `json:"old"` // number of the first line in the old text, from 1
	New   int    `json:"new"` // in the new text
	Lines []Line `json:"lines"`
}

// What becomes of a line.
const (
	Same   = " "
	Add    = "+"
	Remove = "-"
)

// A Line is one line of a Hunk without its end, or in its place the number of lines
// that were left out there.
type Line struct {
	Op      string `json:"op"` // Same, Add or Remove
	Parts   []Part `json:"parts,omitempty"`
	Cut     int    `json:"cut,omitempty"`        // characters left out at the end
	NoEnd   bool   `json:"no_newline,omitempty"` // the text ends here without a newline
	Skipped int    `json:"skipped,omitempty"`    // lines left out; then there are no Parts
}

// A Part is a piece of a line. Its text is as in the file: it may hold characters
// that are not visible.
type Part struct {
	Text string `json:"text"`
	Mark bool   `json:"mark,omitempty"` // the other side has it differently
}

// Visible returns the text of the part with each character visible; tabs stay.
func (p Part) Visible() string { return Visible(p.Text) }

// Visible returns s with each character visible except tabs.
func Visible(s string) string {
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = core.Visible(parts[i])
	}
	return strings.Join(parts, "\t")
}

// Text returns the text of the line without its end.
func (l Line) Text() string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Of returns the difference of two texts.
func Of(before, after string) Diff {
	if before == after {
		return Diff{}
	}
	head, x, y, tail := trim(before, after)
	d := Diff{Added: lines(y), Removed: lines(x)}
	var list []Line
	if d.Added > 0 && d.Removed > 0 {
		if len(x) > maxMiddle || len(y) > maxMiddle {
			d.More = d.Added + d.Removed
			return d
		}
		list = compare(x, y)
		d.Added, d.Removed = count(list)
	} else {
		list = append(toLines(x, Remove), toLines(y, Add)...)
	}
	first := lines(head)
	lead := lastLines(head, context)
	list = append(append(toLines(lead, Same), list...), toLines(firstLines(tail, context), Same)...)
	d.Hunks = hunks(list, first-lines(lead)+1)
	if ends(before) && ends(after) {
		for i := range d.Hunks {
			trimReturns(d.Hunks[i].Lines)
		}
	}
	d.keep()
	return d
}

// trim returns the lines that two texts begin and end with, and what is between them
// in each.
func trim(before, after string) (head, x, y, tail string) {
	n := 0
	for n < min(len(before), len(after)) && before[n] == after[n] {
		n++
	}
	n = strings.LastIndexByte(before[:n], '\n') + 1
	head, x, y = before[:n], before[n:], after[n:]
	k := 0
	for k < min(len(x), len(y)) && x[len(x)-1-k] == y[len(y)-1-k] {
		k++
	}
	tail = x[len(x)-k:]
	if !(atStart(x, len(x)-k) && atStart(y, len(y)-k)) {
		_, tail, _ = strings.Cut(tail, "\n")
	}
	return head, x[:len(x)-len(tail)], y[:len(y)-len(tail)], tail
}

// atStart reports whether a line begins at s[i].
func atStart(s string, i int) bool { return i == 0 || s[i-1] == '\n' }

// lines returns how many lines a text has.
func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && s[len(s)-1] != '\n' {
		n++
	}
	return n
}

func firstLines(s string, n int) string {
	at := 0
	for ; n > 0; n-- {
		i := strings.IndexByte(s[at:], '\n')
		if i < 0 {
			return s
		}
		at += i + 1
	}
	return s[:at]
}

func lastLines(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		at = strings.LastIndexByte(s[:at-1], '\n') + 1
	}
	return s[at:]
}

// toLines returns the lines of a text, at most maxKept and one that has the rest.
func toLines(s, op string) (out []Line) {
	for rest := lines(s); rest > 0; rest-- {
		if len(out) == maxKept {
			return append(out, Line{Op: op, Skipped: rest})
		}
		line, after, ok := strings.Cut(s, "\n")
		out, s = append(out, lineOf(line, op, !ok)), after
	}
	return out
}

func lineOf(text, op string, noEnd bool) Line {
	l := Line{Op: op, NoEnd: noEnd}
	whole := text
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "")
		l.Cut = len([]rune(whole[len(text):]))
	}
	l.Parts = []Part{{Text: strings.ToValidUTF8(text, "\uFFFD")}}
	return l
}

// compare returns the lines of two texts in the order of a unified diff.
func compare(x, y string) []Line {
	a, b := strings.SplitAfter(x, "\n"), strings.SplitAfter(y, "\n")
	a, b = dropEmpty(a), dropEmpty(b)
	steps := Script(a, b, maxEdits)
	out := make([]Line, 0, len(steps))
	i, j := 0, 0
	for _, op := range steps {
		text := ""
		switch op {
		case Same:
			text, i, j = a[i], i+1, j+1
		case Remove:
			text, i = a[i], i+1
		case Add:
			text, j = b[j], j+1
		}
		line, ended := strings.CutSuffix(text, "\n")
		out = append(out, lineOf(line, op, !ended))
	}
	markBlocks(out)
	return out
}

func dropEmpty(list []string) []string {
	if n := len(list); n > 0 && list[n-1] == "" {
		return list[:n-1]
	}
	return list
}

func count(list []Line) (added, removed int) {
	for _, l := range list {
		n := max(1, l.Skipped)
		switch l.Op {
		case Add:
			added += n
		case Remove:
			removed += n
		}
	}
	return added, removed
}

// ends reports whether every line of s ends in CRLF; then no line shows it.
func ends(s string) bool { return strings.Count(s, "\r\n") == lines(s) }

func trimReturns(list []Line) {
	for i := range list {
		if n := len(list[i].Parts); n > 0 {
			last := &list[i].Parts[n-1]
			last.Text = strings.TrimSuffix(last.Text, "\r")
		}
	}
}

// hunks groups lines, the first of which has the number from in both texts.
func hunks(list []Line, from int) (out []Hunk) {
	before, after, quiet := from, from, 0
	var open *Hunk
	for i, l := range list {
		if l.Op != Same {
			if open == nil {
				lead := min(i, context)
				if len(out) > 0 {
					lead = min(lead, quiet)
				}
				out = append(out, Hunk{Old: before - lead, New: after - lead, Lines: append([]Line(nil), list[i-lead:i]...)})
				open = &out[len(out)-1]
			}
			quiet = 0
		} else {
			quiet++
		}
		if open != nil {
			open.Lines = append(open.Lines, l)
			if quiet > 2*context {
				open.Lines = open.Lines[:len(open.Lines)-context-1]
				quiet, open = context+1, nil
			}
		}
		n := max(1, l.Skipped)
		if l.Op != Add {
			before += n
		}
		if l.Op != Remove {
			after += n
		}
	}
	if open != nil && quiet > context {
		open.Lines = open.Lines[:len(open.Lines)-(quiet-context)]
	}
	return out
}

// keep cuts the hunks to what users are shown, and counts the rest.
func (d *Diff) keep() {
	left, size, shown := maxKept, maxKeptSize, 0
	for h := range d.Hunks {
		kept := fold(d.Hunks[h].Lines)
		for i, l := range kept {
			if size -= len(l.Text()) + partSize*len(l.Parts); left == 0 || size < 0 {
				d.Hunks[h].Lines, d.Hunks = kept[:i], d.Hunks[:h+1]
				if i == 0 {
					d.Hunks = d.Hunks[:h]
				}
				d.More = d.Added + d.Removed - shown
				return
			}
			left--
			if l.Op != Same && l.Skipped == 0 {
				shown++
			}
		}
		d.Hunks[h].Lines = kept
	}
	d.More = d.Added + d.Removed - shown
}

// fold shortens each long block of removed lines that added ones follow, so that these
// are shown, too.
func fold(list []Line) (out []Line) {
	for i := 0; i < len(list); {
		end := i
		for end < len(list) && list[end].Op == list[i].Op {
			end++
		}
		block := list[i:end]
		if list[i].Op == Remove && len(block) > maxRemoved && end < len(list) && list[end].Op == Add {
			_, rest := count(block[maxRemoved:])
			out = append(append(out, block[:maxRemoved]...), Line{Op: Remove, Skipped: rest})
		} else {
			out = append(out, block...)
		}
		i = end
	}
	return out
}

// Unified returns the hunks as a unified diff without the names of files. Where lines
// were left out it reports it, in a line that begins with "…".
func (d Diff) Unified() string {
	var b strings.Builder
	said := 0
	for _, h := range d.Hunks {
		added, removed := count(h.Lines)
		same := len(h.Lines)
		for _, l := range h.Lines {
			if l.Op != Same {
				same--
			}
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.Old, same+removed, h.New, same+added)
		for _, l := range h.Lines {
			said += l.Skipped
			writeLine(&b, l)
		}
	}
	if rest := d.More - said; rest > 0 {
		fmt.Fprintf(&b, "… %d more lines\n", rest)
	}
	return b.String()
}

func writeLine(b *strings.Builder, l Line) {
	if l.Skipped > 0 {
		fmt.Fprintf(b, "… %d more lines\n", l.Skipped)
		return
	}
	b.WriteString(l.Op + l.Text())
	if l.Cut > 0 {
		fmt.Fprintf(b, "… %d more characters", l.Cut)
	}
	b.WriteByte('\n')
	if l.NoEnd {
		b.WriteString("\\ No newline at end of file\n")
	}
}
