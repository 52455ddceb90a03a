package chunk

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What of HTML is no text, and what begins a new paragraph.
var (
	hidden = []atom.Atom{atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Iframe}
	inline = []atom.Atom{atom.A, atom.Abbr, atom.B, atom.Cite, atom.Code, atom.Em, atom.I, atom.Img, atom.Kbd, atom.Mark, atom.Q, atom.S,
		atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.U, atom.Var, atom.Wbr, atom.Label}
)

// page splits HTML. It does not build a tree: a page may be hostile.
func page(source string) (out Text) {
	z := html.NewTokenizer(strings.NewReader(source))
	var pieces []piece
	var b strings.Builder
	begin, line, skip := 1, 1, atom.Atom(0)
	inTitle := false
	flush := func() {
		if s := strings.Join(strings.Fields(clean(b.String())), " "); s != "" {
			pieces = append(pieces, piece{text: s, line: begin})
		}
		b.Reset()
	}
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		raw := strings.Count(string(z.Raw()), "\n")
		switch name, _ := z.TagName(); {
		case kind == html.TextToken && skip == 0:
			s := string(z.Text())
			if inTitle {
				out.Title += s
				break
			}
			if strings.TrimSpace(b.String()) == "" {
				b.Reset()
				begin = line + strings.Count(s[:len(s)-len(strings.TrimLeft(s, " \t\r\n"))], "\n")
			}
			b.WriteString(s)
		case kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken:
			tag := atom.Lookup(name)
			switch {
			case skip != 0:
				if kind == html.EndTagToken && tag == skip {
					skip = 0
				}
			case tag == atom.Title:
				inTitle = kind == html.StartTagToken && out.Title == ""
			case kind == html.StartTagToken && slices.Contains(hidden, tag):
				skip = tag
			case !slices.Contains(inline, tag):
				flush()
			}
		}
		line += raw
	}
	flush()
	out.Title = strings.Join(strings.Fields(clean(out.Title)), " ")
	out.Chunks = join(pieces)
	return out
}
