package markdown

import (
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"gatehouse/core"
)

// table writes a table as lines of fixed width: cells padded, the header
// underlined. Styles inside cells are dropped, their text is kept.
func (w *writer) table(t *east.Table) {
	var rows [][]string
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var cells []string
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, w.cell(c))
		}
		rows = append(rows, cells)
	}
	widths := widths(rows)
	indent := w.indent
	w.indent = ""
	i := w.open(core.Span{Style: core.StylePre})
	for n, cells := range rows {
		if n > 0 {
			w.newline()
		}
		w.raw([]byte(row(cells, widths, t.Alignments)))
		if n == 0 {
			w.newline()
			w.raw([]byte(ruler(widths)))
		}
	}
	w.close(i)
	w.indent = indent
}

// cell returns the text of one cell, on one line.
func (w *writer) cell(c ast.Node) string {
	sub := writer{src: w.src, schemes: w.schemes, maxLink: w.maxLink}
	sub.inlines(c)
	return strings.TrimSpace(strings.ReplaceAll(string(sub.out), "\n", " "))
}

// maxColumn bounds padding: a cell wider than this is out of its column
// instead of making every other row as wide.
const maxColumn = 40

func widths(rows [][]string) []int {
	var out []int
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(out) {
				out = append(out, 1)
			}
			out[i] = max(out[i], min(columns(c), maxColumn))
		}
	}
	return out
}

func row(cells []string, widths []int, align []east.Alignment) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString(" │ ")
		}
		pad := max(widths[i]-columns(c), 0)
		left := 0
		if i < len(align) && align[i] == east.AlignRight {
			left = pad
		} else if i < len(align) && align[i] == east.AlignCenter {
			left = pad / 2
		}
		b.WriteString(strings.Repeat(" ", left))
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", pad-left))
		}
	}
	return b.String()
}

func ruler(widths []int) string {
	var b strings.Builder
	for i, n := range widths {
		if i > 0 {
			b.WriteString("─┼─")
		}
		b.WriteString(strings.Repeat("─", n))
	}
	return b.String()
}

// columns returns how wide s is in a fixed-width font: East Asian letters and
// emoji take two columns, marks none.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0x300:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0x1F300 && r <= 0x1FAFF || r >= 0xFF01 && r <= 0xFF60:
			n += 2
		default:
			n++
		}
	}
	return n
}
