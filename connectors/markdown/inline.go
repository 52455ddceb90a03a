package markdown

import (
	"bytes"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
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
func (w *writer) linked(dest string, n ast.Node) {
	if w.link {
		w.inlines(n)
		return
	}
	before := len(w.out)
	if !linkable(dest, w.schemes) || w.maxLink > 0 && len(dest) > w.maxLink {
		w.inlines(n)
		if label := strings.TrimSpace(string(w.out[before:])); dest != "" && label != dest && "mailto:"+label != dest {
			if label != "" {
				w.writeString(" ")
			}
			w.writeString("(" + clean(strings.TrimPrefix(dest, "mailto:")) + ")")
		}
		return
	}
	w.link = true
	i := w.open(core.Span{Style: core.StyleLink, URL: dest})
	before = len(w.out)
	w.inlines(n)
	if len(bytes.TrimSpace(w.out[before:])) == 0 {
		w.writeString(dest)
	}
	w.close(i)
	w.link = false
}

func (w *writer) autoLink(n *ast.AutoLink) {
	dest := string(n.URL(w.src))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(dest), "mailto:") {
		dest = "mailto:" + dest
	}
	if w.link || !linkable(dest, w.schemes) {
		w.write(n.Label(w.src))
		return
	}
	i := w.open(core.Span{Style: core.StyleLink, URL: dest})
	w.write(n.Label(w.src))
	w.close(i)
}

// linkable reports whether url may follow a label: a scheme of the
// list, and for web pages a host that platforms take (with a dot, or an
// address) and a real port. Telegram refuses a whole message for one link to
// "http://localhost".
func linkable(link string, schemes []string) bool {
	scheme, rest, ok := strings.Cut(link, ":")
	scheme = strings.ToLower(scheme)
	if !ok || rest == "" || !slices.Contains(schemes, scheme) {
		return false
	}
	if strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' }) {
		return false
	}
	if scheme != "http" && scheme != "https" {
		return strings.Trim(rest, "/?#@:") != ""
	}
	u, err := url.Parse(link)
	if err != nil || strings.Trim(u.Hostname(), ".") == "" {
		return false
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return false
		}
	}
	if strings.HasPrefix(u.Host, "[") {
		_, err := netip.ParseAddr(u.Hostname())
		return err == nil
	}
	return strings.Contains(u.Hostname(), ".") && !strings.ContainsAny(u.Host, "\\^`{}|<>\"")
}
