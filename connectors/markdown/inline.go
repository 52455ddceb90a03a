package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"gatehouse/core"
)

func (w *writer) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.inline(c)
	}
}

func (w *writer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.text(n)
	case *ast.String:
		w.write(n.Value)
	case *ast.CodeSpan:
		w.codeSpan(n)
	case *ast.Emphasis:
		style := core.StyleItalic
		if n.Level == 2 {
			style = core.StyleBold
		}
		w.styled(style, n)
	case *east.Strikethrough:
		w.styled(core.StyleStrike, n)
	case *spoiler:
		w.styled(core.StyleSpoiler, n)
	case *ast.Link:
		w.linked(string(unescape(n.Destination)), n)
	case *ast.Image:
		w.linked(string(unescape(n.Destination)), n)
	case *ast.AutoLink:
		w.autoLink(n)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			w.write(seg.Value(w.src))
		}
	case *east.TaskCheckBox:
		if n.IsChecked {
			w.writeString("☑ ")
		} else {
			w.writeString("☐ ")
		}
	default:
		w.inlines(n)
	}
}

func (w *writer) text(n *ast.Text) {
	b := n.Segment.Value(w.src)
	if !n.IsRaw() {
		b = unescape(b)
	}
	w.write(b)
	if n.SoftLineBreak() || n.HardLineBreak() {
		w.newline()
	}
}

// styled writes n's children under style. A style that is already open is not opened twice.
func (w *writer) styled(style core.Style, n ast.Node) {
	for _, i := range w.styles {
		if w.spans[i].Style == style {
			w.inlines(n)
			return
		}
	}
	at := len(w.styles)
	w.styles = append(w.styles, w.open(core.Span{Style: style}))
	w.inlines(n)
	w.close(w.styles[at])
	w.styles = w.styles[:at]
}

// codeSpan writes code. Styles around it are closed before and opened again
// behind it, as code may neither hold nor be held by another style.
func (w *writer) codeSpan(n *ast.CodeSpan) {
	if w.link {
		w.codeText(n)
		return
	}
	for _, i := range w.styles {
		w.close(i)
	}
	i := w.open(core.Span{Style: core.StyleCode})
	w.codeText(n)
	w.close(i)
	for k, i := range w.styles {
		w.styles[k] = w.open(core.Span{Style: w.spans[i].Style})
	}
}

func (w *writer) codeText(n *ast.CodeSpan) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			w.write(bytes.ReplaceAll(t.Segment.Value(w.src), []byte("\n"), []byte(" ")))
		}
	}
}

// linked writes a link or image. A destination that no platform opens (a
// path, javascript:) is shown behind the label instead of being hidden.
func (w *writer) linked(url string, n ast.Node) {
	if w.link {
		w.inlines(n)
		return
	}
	before := len(w.out)
	if !linkable(url) {
		w.inlines(n)
		if label := strings.TrimSpace(string(w.out[before:])); url != "" && label != url {
			if label != "" {
				w.writeString(" ")
			}
			w.writeString("(" + clean(url) + ")")
		}
		return
	}
	w.link = true
	i := w.open(core.Span{Style: core.StyleLink, URL: url})
	before = len(w.out)
	w.inlines(n)
	if len(bytes.TrimSpace(w.out[before:])) == 0 {
		w.writeString(url)
	}
	w.close(i)
	w.link = false
}

func (w *writer) autoLink(n *ast.AutoLink) {
	url := string(n.URL(w.src))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	if w.link || !linkable(url) {
		w.write(n.Label(w.src))
		return
	}
	i := w.open(core.Span{Style: core.StyleLink, URL: url})
	w.write(n.Label(w.src))
	w.close(i)
}

// linkable reports whether url may stand behind a label: only schemes that
// open a page, a chat or a mail, and no white space or control characters.
func linkable(url string) bool {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || rest == "" || strings.ContainsFunc(url, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' }) {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
		return len(rest) > 2 && strings.HasPrefix(rest, "//")
	case "tg", "mailto":
		return true
	}
	return false
}
