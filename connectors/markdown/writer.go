package markdown

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"gatehouse/core"
)

// A writer walks the tree and keeps the text, its length in UTF-16 units and
// the spans. Styles follow the strictest platform's rules: code holds no
// other style, a link holds no code, quotes don't nest.
type writer struct {
	src     []byte
	schemes []string // that links may have
	maxLink int      // longest hidden target in bytes; 0 is any
	out     []byte
	units   int
	spans   []core.Span
	indent  string // written after each line break inside a list item
	depth   int    // of lists
	quote   bool
	link    bool
	styles  []int // open inline spans, as indexes into spans; Length is set at the end
}

func (w *writer) write(b []byte) {
	if len(b) == 0 {
		return
	}
	if w.indent != "" && len(w.out) > 0 && w.out[len(w.out)-1] == '\n' {
		w.out = append(w.out, w.indent...)
		w.units += len(w.indent)
	}
	w.raw(b)
}

// raw appends without indentation.
func (w *writer) raw(b []byte) {
	w.out = append(w.out, b...)
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			w.units++
			continue
		}
		_, size := utf8.DecodeRune(b[i:])
		i += size
		w.units++
		if size == 4 {
			w.units++
		}
	}
}

func (w *writer) writeString(s string) { w.write([]byte(s)) }

func (w *writer) newline() {
	w.out = append(w.out, '\n')
	w.units++
}

// open begins a span here. close ends it; what turns out empty is dropped by finish.
func (w *writer) open(s core.Span) int {
	if w.indent != "" && len(w.out) > 0 && w.out[len(w.out)-1] == '\n' && s.Style != core.StylePre {
		w.out = append(w.out, w.indent...)
		w.units += len(w.indent)
	}
	s.Offset = w.units
	w.spans = append(w.spans, s)
	return len(w.spans) - 1
}

func (w *writer) close(i int) { w.spans[i].Length = w.units - w.spans[i].Offset }

// finish gives the spans in order, outer before inner.
func (w *writer) finish() []core.Span {
	spans := slices.DeleteFunc(w.spans, func(s core.Span) bool { return s.Length <= 0 })
	slices.SortStableFunc(spans, func(a, b core.Span) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	return spans
}

// blocks writes n's children with a blank line between them, or only a line
// break in a tight list.
func (w *writer) blocks(n ast.Node) {
	first := true
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.Kind() == ast.KindLinkReferenceDefinition {
			continue
		}
		if !first {
			w.newline()
			if !tight(n, c) {
				w.newline()
			}
		}
		first = false
		w.block(c)
	}
}

// tight reports whether c follows the block before it without a blank line.
func tight(parent, c ast.Node) bool {
	switch p := parent.(type) {
	case *ast.List:
		return p.IsTight
	case *ast.ListItem:
		list, ok := p.Parent().(*ast.List)
		return ok && list.IsTight || c.Kind() == ast.KindList
	}
	return false
}

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.styled(core.StyleBold, n)
	case *ast.Blockquote:
		w.blockquote(n)
	case *ast.List:
		w.list(n)
	case *ast.FencedCodeBlock:
		w.code(n, string(n.Language(w.src)))
	case *ast.CodeBlock:
		w.code(n, "")
	case *ast.HTMLBlock:
		w.lines(n)
		if n.HasClosure() {
			w.write(bytes.TrimRight(n.ClosureLine.Value(w.src), "\n"))
		}
		w.trim()
	case *ast.ThematicBreak:
		w.writeString("———")
	case *east.Table:
		w.table(n)
	default: // Paragraph, TextBlock
		w.inlines(n)
	}
}

func (w *writer) blockquote(n ast.Node) {
	if w.quote {
		w.blocks(n)
		return
	}
	w.quote = true
	i := w.open(core.Span{Style: core.StyleQuote})
	w.blocks(n)
	w.close(i)
	w.quote = false
}

// lines writes n's source lines as they are.
func (w *writer) lines(n ast.Node) {
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		w.write(seg.Value(w.src))
	}
}

// trim takes back the line break that ends the last block.
func (w *writer) trim() {
	for len(w.out) > 0 && w.out[len(w.out)-1] == '\n' {
		w.out = w.out[:len(w.out)-1]
		w.units--
	}
}

// code writes a block as pre, unindented, so that it can be copied from the chat.
func (w *writer) code(n ast.Node, language string) {
	indent := w.indent
	w.indent = ""
	i := w.open(core.Span{Style: core.StylePre, Language: language})
	begin := len(w.out)
	w.lines(n)
	if n := len(w.out); n > begin && w.out[n-1] == '\n' {
		w.out = w.out[:n-1]
		w.units--
	}
	w.close(i)
	w.indent = indent
}

func (w *writer) list(n *ast.List) {
	bullets := [...]string{"• ", "◦ ", "▪ "}
	number, indent := n.Start, w.indent
	w.depth++
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c != n.FirstChild() {
			w.newline()
			if !n.IsTight {
				w.newline()
			}
		}
		mark := bullets[min(w.depth-1, len(bullets)-1)]
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		w.writeString(mark)
		w.indent = indent + strings.Repeat(" ", utf8.RuneCountInString(mark))
		if w.depth > maxNesting/2 {
			w.indent = indent
		}
		if first := c.FirstChild(); first != nil && pre(first) {
			w.newline()
		}
		w.blocks(c)
		w.indent = indent
	}
	w.depth--
}

// pre reports whether n is shown in its own lines of fixed width.
func pre(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindFencedCodeBlock, ast.KindCodeBlock, east.KindTable:
		return true
	}
	return false
}

// unescape resolves backslashes and character references, as CommonMark asks
// for text that is not code.
func unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') >= 0 {
		b = util.UnescapePunctuations(b)
	}
	if bytes.IndexByte(b, '&') >= 0 {
		b = util.ResolveEntityNames(util.ResolveNumericReferences(b))
		b = []byte(clean(string(b)))
	}
	return b
}
