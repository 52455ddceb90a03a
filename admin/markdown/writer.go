package markdown

import (
	"bytes"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// firstLevel is the level of a source's first heading: the page has those above.
const firstLevel = 3

// maxDepth bounds the depth of blocks and of styles within them.
const maxDepth = 100

// maxInfo bounds what is shown of a code block's language, in characters.
const maxInfo = 60

// A writer makes HTML of a syntax tree.
type writer struct {
	src   []byte
	b     strings.Builder
	level int  // of the heading before
	link  bool // inside of one
	deep  bool // the tree is deeper than maxDepth
}

func (w *writer) tag(s string)  { w.b.WriteString(s) }
func (w *writer) text(s []byte) { template.HTMLEscape(&w.b, s) }

func (w *writer) blocks(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil && !w.deep; c = c.NextSibling() {
		w.block(c, depth+1)
	}
}

func (w *writer) block(n ast.Node, depth int) {
	if depth > maxDepth {
		w.deep = true
		return
	}
	switch n := n.(type) {
	case *ast.Heading:
		w.heading(n, depth)
	case *ast.Paragraph:
		w.tag("<p>")
		w.inlines(n, depth)
		w.tag("</p>\n")
	case *ast.TextBlock:
		w.inlines(n, depth)
		if n.NextSibling() != nil {
			w.tag("<br>\n")
		}
	case *ast.ThematicBreak:
		w.tag("<hr>\n")
	case *ast.Blockquote:
		w.within("<blockquote>\n", "</blockquote>\n", n, depth)
	case *ast.List:
		w.list(n, depth)
	case *ast.ListItem:
		w.within("<li>", "</li>\n", n, depth)
	case *ast.CodeBlock:
		w.code(nil, n.Lines())
	case *ast.FencedCodeBlock:
		var info []byte
		if n.Info != nil {
			info = n.Info.Segment.Value(w.src)
		}
		w.code(info, n.Lines())
	case *east.Table:
		w.within(`<div class="grid" tabindex="0" role="group" aria-label="Table"><table>`+"\n", "</table></div>\n", n, depth)
	case *east.TableHeader:
		w.tag("<thead><tr>")
		w.cells(n, "th", depth)
		w.tag("</tr></thead>\n")
	case *east.TableRow:
		w.tag("<tr>")
		w.cells(n, "td", depth)
		w.tag("</tr>\n")
	default:
		w.blocks(n, depth)
	}
}

func (w *writer) within(open, end string, n ast.Node, depth int) {
	w.tag(open)
	w.blocks(n, depth)
	w.tag(end)
}

// heading writes a heading without leaving out a level, whatever the source does.
func (w *writer) heading(n *ast.Heading, depth int) {
	w.level = min(firstLevel-1+n.Level, w.level+1, 6)
	level := strconv.Itoa(w.level)
	w.tag("<h" + level + ">")
	w.inlines(n, depth)
	w.tag("</h" + level + ">\n")
}

func (w *writer) list(n *ast.List, depth int) {
	if !n.IsOrdered() {
		w.within("<ul>\n", "</ul>\n", n, depth)
		return
	}
	open := "<ol>\n"
	if n.Start != 1 {
		open = `<ol start="` + strconv.Itoa(n.Start) + "\">\n"
	}
	w.within(open, "</ol>\n", n, depth)
}

// aligned are the classes of a table's columns.
var aligned = map[east.Alignment]string{east.AlignRight: ` class="right"`, east.AlignCenter: ` class="mid"`}

func (w *writer) cells(row ast.Node, name string, depth int) {
	for c := row.FirstChild(); c != nil; c = c.NextSibling() {
		class := ""
		if cell, ok := c.(*east.TableCell); ok {
			class = aligned[cell.Alignment]
		}
		w.tag("<" + name + class + ">")
		w.inlines(c, depth)
		w.tag("</" + name + ">")
	}
}

// code writes a code block below its language and a button that copies it.
func (w *writer) code(info []byte, lines interface {
	Value(source []byte) []byte
}) {
	w.tag(`<div class="code"><p class="kind">`)
	if r := []rune(string(info)); len(r) > maxInfo {
		info = []byte(string(r[:maxInfo]) + "…")
	}
	w.text(info)
	w.tag(`<button type="button" class="copy" data-copy>Copy<span class="unseen"> the code</span></button></p><pre tabindex="0" role="group" aria-label="Code"><code>`)
	w.text(bytes.TrimSuffix(lines.Value(w.src), []byte("\n")))
	w.tag("</code></pre></div>\n")
}

func (w *writer) inlines(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil && !w.deep; c = c.NextSibling() {
		w.inline(c, depth+1)
	}
}

func (w *writer) inline(n ast.Node, depth int) {
	if depth > maxDepth {
		w.deep = true
		return
	}
	switch n := n.(type) {
	case *ast.Text:
		value := n.Segment.Value(w.src)
		if !n.IsRaw() {
			value = []byte(clean(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value))))))
		}
		w.text(value)
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.tag("<br>\n")
		}
	case *ast.String:
		w.text(n.Value)
	case *ast.CodeSpan:
		w.tag("<code>")
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				w.text(bytes.ReplaceAll(t.Segment.Value(w.src), []byte("\n"), []byte(" ")))
			}
		}
		w.tag("</code>")
	case *ast.Emphasis:
		name := "em>"
		if n.Level == 2 {
			name = "strong>"
		}
		w.styled(name, n, depth)
	case *east.Strikethrough:
		w.styled("del>", n, depth)
	case *ast.Link:
		w.linked(n.Destination, n.Title, n, depth)
	case *ast.Image:
		w.linked(n.Destination, n.Title, n, depth)
	case *ast.AutoLink:
		w.autoLink(n)
	case *east.TaskCheckBox:
		mark := `<span class="task" role="img" aria-label="Open">☐</span> `
		if n.IsChecked {
			mark = `<span class="task" role="img" aria-label="Done">☑</span> `
		}
		w.tag(mark)
	default:
		w.inlines(n, depth)
	}
}

func (w *writer) styled(name string, n ast.Node, depth int) {
	w.tag("<" + name)
	w.inlines(n, depth)
	w.tag("</" + name)
}

// linked writes a link, or an image as one. Where it leads is in its title; an address
// that may not be followed is shown behind the label.
func (w *writer) linked(dest, title []byte, n ast.Node, depth int) {
	to, ok := address(dest)
	if w.link || !ok {
		from := w.b.Len()
		w.inlines(n, depth)
		if len(dest) > 0 && !w.link {
			if w.b.Len() > from {
				w.tag(" ")
			}
			w.tag("(")
			w.text(dest)
			w.tag(")")
		}
		return
	}
	tip := to
	if len(title) > 0 {
		tip += " " + string(title)
	}
	w.open(to, tip)
	from := w.b.Len()
	w.inlines(n, depth)
	if strings.TrimSpace(w.b.String()[from:]) == "" {
		w.text([]byte(to))
	}
	w.close()
}

func (w *writer) autoLink(n *ast.AutoLink) {
	dest := n.URL(w.src)
	if n.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(dest), []byte("mailto:")) {
		dest = append([]byte("mailto:"), dest...)
	}
	to, ok := address(dest)
	if w.link || !ok {
		w.text(n.Label(w.src))
		return
	}
	w.open(to, "")
	w.text(n.Label(w.src))
	w.close()
}

func (w *writer) open(to, title string) {
	w.link = true
	w.tag(`<a href="`)
	w.text([]byte(to))
	if title != "" {
		w.tag(`" title="`)
		w.text([]byte(title))
	}
	w.tag(`" target="_blank" rel="noopener noreferrer nofollow">`)
}

func (w *writer) close() {
	w.link = false
	w.tag("</a>")
}

// schemes are those of the addresses that may be followed.
var schemes = []string{"http", "https", "mailto"}

// address returns the address of a link's destination; false for one that may not be
// followed: a path, another scheme, or no host.
func address(dest []byte) (string, bool) {
	to := string(util.URLEscape(dest, true))
	u, err := url.Parse(to)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Scheme == "mailto" && u.Opaque == "" || u.Scheme != "mailto" && u.Hostname() == "" {
		return "", false
	}
	return to, true
}
