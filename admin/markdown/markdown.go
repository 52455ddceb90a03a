// Package markdown renders Markdown that models and users wrote as HTML for the
// panel. Every tag and attribute of the result is a constant of this package, and
// the rest is escaped text: nothing in a source can add a script, a style, a
// handler or an image. The package is pure.
package markdown

import (
	"html/template"
	"strings"

	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds of what is read as Markdown. A source beyond one of them is shown as
// plain text, so that no text keeps the parser busy.
const (
	MaxSource  = 48 << 10 // bytes
	maxNesting = 32       // markers of quotes and lists at the start of one line
	maxIndent  = 128      // columns before a line's text: lists nest by them
	maxCells   = 5_000    // of all tables: short rows are filled up to the header's width
	maxMarks   = 4_000    // asterisks, underscores and tildes: each is compared with those before it
	maxOpen    = 2_000    // brackets and backticks: each is searched for its end
	maxGrowth  = 12       // length of the result, in lengths of the source
)

// The parsers of raw HTML and of link reference definitions are left out: both would
// hide parts of the source.
var reader = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(), 999),
	),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// HTML returns a source as HTML: CommonMark without raw HTML and reference
// definitions, with tables, strike-through, task lists and bare addresses. Line ends
// are kept, images are links, and a source beyond the package's bounds is plain text.
func HTML(source string) template.HTML {
	source = clean(source)
	if heavy(source) {
		return plain(source)
	}
	src := []byte(source)
	w := writer{src: src, level: firstLevel - 1}
	w.b.Grow(len(src) + len(src)/2)
	w.blocks(reader.Parse(text.NewReader(src)), 0)
	if w.deep || w.b.Len() > 4096+maxGrowth*len(src) {
		return plain(source)
	}
	return template.HTML(w.b.String())
}

// plain returns a source as one paragraph that keeps its blanks and line ends.
func plain(source string) template.HTML {
	return template.HTML(`<p class="pre">` + template.HTMLEscapeString(source) + `</p>`)
}

// clean makes s valid UTF-8 with \n as its only line end and without control
// characters.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, s)
}

// heavy reports whether s is beyond one of the bounds.
func heavy(s string) bool {
	if len(s) > MaxSource {
		return true
	}
	marks, open := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '*', '_', '~':
			marks++
		case '[', ']', '`', '<':
			open++
		}
	}
	return marks > maxMarks || open > maxOpen || nested(s) || gridded(s)
}

// nested reports whether a line is indented, or opens quotes and lists, too deep.
func nested(s string) bool {
	for line := range strings.Lines(s) {
		markers, column := 0, 0
	opening:
		for i := range len(line) {
			switch c := line[i]; {
			case c == '\t':
				column += 4
			case c == ' ', c >= '0' && c <= '9':
				column++
			case c == '>', c == '-', c == '+', c == '*', c == '.', c == ')':
				column++
				if i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t' || c == '>') {
					markers++
				}
			default:
				break opening
			}
			if markers > maxNesting || column > maxIndent && strings.TrimSpace(line[:i+1]) == "" {
				return true
			}
		}
	}
	return false
}

// gridded reports whether s could have tables of more than maxCells cells.
func gridded(s string) bool {
	total, wide, rows := 0, 0, 0
	for line := range strings.Lines(s) {
		if strings.TrimSpace(line) == "" { // a table ends here
			total, wide, rows = total+wide*rows, 0, 0
			continue
		}
		if bars := strings.Count(line, "|"); bars > 0 {
			wide = max(wide, bars+1)
		}
		if rows++; total+wide*rows > maxCells {
			return true
		}
	}
	return false
}
