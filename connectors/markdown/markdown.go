// Package markdown turns what a model writes into what chat platforms can
// show: plain text with styled spans, cut into parts within a length limit.
// There is no markup in the result, so no platform can refuse it as badly
// formed, whatever the model wrote. Everything here is pure.
package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"gatehouse/core"
)

const (
	// MaxSource is the longest Markdown that is read as such, in bytes; a
	// longer text is shown as it is. It bounds parsing time and memory.
	MaxSource = 96 << 10
	// maxNesting is how deep quotes and lists may nest (counted as markers at
	// the start of one line) before a text is shown as it is.
	maxNesting = 64
)

// A Renderer makes parts of at most a fixed number of UTF-16 units. It is
// immutable and may be used by several goroutines at once.
type Renderer struct {
	limit   int
	schemes []string
	parser  parser.Parser
	plain   parser.Parser       // for sources without link reference definitions: it costs less
	size    func(core.Part) int // nil: the length of the text
	maxLink int                 // 0: any
}

// Sized returns a Renderer like r whose parts are also at most r's limit by size,
// which counts what a platform's own markup adds; it must not be less for more
// of the same text. A link to more than maxLink bytes is shown behind its
// label instead of hidden, so that it can be cut like other text.
func (r *Renderer) Sized(size func(core.Part) int, maxLink int) *Renderer {
	sized := *r
	sized.size, sized.maxLink = size, maxLink
	return &sized
}

// New makes a Renderer for parts of at most limit UTF-16 units (Telegram:
// 4096, Discord: 2000). A limit below 16 is taken as 16, so that progress is
// always possible. schemes are those that the platform opens behind a label,
// in lower case; http, https, tg and mailto when none is given.
func New(limit int, schemes ...string) *Renderer {
	if len(schemes) == 0 {
		schemes = []string{"http", "https", "tg", "mailto"}
	}
	inline := append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(spoilerParser{}, 500))
	build := func(paragraphs ...util.PrioritizedValue) parser.Parser {
		return parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithInlineParsers(inline...),
			parser.WithParagraphTransformers(append(paragraphs, util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
			parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
		)
	}
	return &Renderer{limit: max(limit, 16), schemes: schemes, parser: build(parser.DefaultParagraphTransformers()...), plain: build()}
}

// parse reads source, in which the definition of a link's reference needs "]:".
func (r *Renderer) parse(source string, src []byte) ast.Node {
	p := r.plain
	if strings.Contains(source, "]:") {
		p = r.parser
	}
	return p.Parse(text.NewReader(src))
}

// Render reads source as Markdown (CommonMark with tables, strike-through,
// task lists and ||spoilers||) and returns its parts in order. Text is never
// lost: what is not understood is shown literally. A source with nothing to
// show gives no part.
func (r *Renderer) Render(source string) []core.Part {
	source = clean(source)
	if len(source) > MaxSource || nested(source) || gridded(source) || crowded(source) {
		return r.split(core.Part{Text: source})
	}
	src := []byte(source)
	root := r.parse(source, src)
	w := writer{src: src, schemes: r.schemes, maxLink: r.maxLink, out: make([]byte, 0, len(src)+len(src)/8), spans: make([]core.Span, 0, 16)}
	w.blocks(root)
	return r.split(core.Part{Text: string(w.out), Spans: w.finish()})
}

func (r *Renderer) split(p core.Part) []core.Part {
	c := newCutter(p, r.limit)
	c.size = r.size
	return c.split(p)
}

// Plain cuts text that is not Markdown into parts of at most limit UTF-16 units.
func Plain(s string, limit int) []core.Part {
	return Split(core.Part{Text: clean(s)}, limit)
}

// clean makes s valid UTF-8 with \n as its only line end and without control
// characters, which platforms drop and so would shift every offset behind.
func clean(s string) string {
	dirty := false
	for i := 0; i < len(s) && !dirty; i++ {
		c := s[i]
		dirty = c < ' ' && c != '\n' && c != '\t' || c == 0x7f
	}
	if !dirty && utf8.ValidString(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r < ' ' && r != '\n' && r != '\t' || r == 0x7f:
			return -1
		}
		return r
	}, s)
}

// nested reports whether some line opens with more than maxNesting quote or
// list markers: such text is an attack on the parser's stack, not an answer.
func nested(s string) bool {
	for line := range strings.Lines(s) {
		n, digits := 0, 0
	marks:
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == ' ' || c == '\t':
			case c == '>' || c == '-' || c == '+' || c == '*':
				if n++; n > maxNesting && opens(line) {
					return true
				}
			case c >= '0' && c <= '9':
				digits++
			case (c == '.' || c == ')') && digits > 0:
				digits = 0
				if n++; n > maxNesting {
					return true
				}
			default:
				break marks
			}
		}
	}
	return false
}

// maxCells bounds rows × columns of all tables: a parser fills short rows up
// to the header's width, so that a few kilobytes could ask for gigabytes.
const maxCells = 100_000

// Bounds of what a parser looks for again and again: each "](" that never
// ends is searched to the end of its paragraph, each "*" or "_" without a
// partner is compared with those before it.
const (
	maxLinks  = 1_000
	maxStyles = 10_000
)

// crowded reports whether s holds more of these than an answer has.
func crowded(s string) bool {
	return strings.Count(s, "](") > maxLinks || strings.Count(s, "*")+strings.Count(s, "_") > maxStyles
}

// gridded reports whether s could hold tables of more than maxCells cells.
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

// opens reports whether a line opens nested blocks: "- - > -" and ">>>" do, the ruler
// "-----" does not.
func opens(line string) bool {
	return strings.Contains(line, ">") || strings.Contains(strings.TrimSpace(line), " ")
}

// UTF16Len returns the length of s in UTF-16 units, the unit of Span and of every
// platform's limit.
func UTF16Len(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			n++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
		n++
		if size == 4 {
			n++
		}
	}
	return n
}
