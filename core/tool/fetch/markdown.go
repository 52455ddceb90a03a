package fetch

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxNesting bounds the lists and quotes in one another that are kept apart.
const maxNesting = 16

// markdown returns the readable text of a page, with headings, lists, links, quotes and
// code as Markdown has them, until it is longer than maxText. It goes through the page
// once, token by token, so that no page is too deep or too broken for it.
func markdown(page string, base *url.URL) string {
	w := writer{base: base}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		if len(w.out) > maxText {
			kind = html.ErrorToken // no one reads more
		}
		switch kind {
		case html.ErrorToken:
			return strings.TrimSpace(string(w.out)) + "\n"
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			w.start(t, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			w.end(z.Token().DataAtom)
		}
	}
}

// A writer makes Markdown of tokens.
type writer struct {
	base  *url.URL
	out   []byte
	space bool // a blank is due before the next text
	fresh int  // line ends that are due before the next text

	hidden atom.Atom // the element that is left out, 0 for none
	depth  int       // how often it is open
	pre    int
	links  []link
	lists  []int // numbers of the lists that are open, -1 for bullets
	quotes int
}

type link struct {
	from int // where its text begins
	to   string
}

// unseen elements hold no text for readers.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Template: true, atom.Svg: true, atom.Noscript: true, atom.Iframe: true,
	atom.Object: true, atom.Canvas: true, atom.Math: true, atom.Select: true, atom.Datalist: true,
}

// apart is how many line ends are around an element.
var apart = map[atom.Atom]int{
	atom.P: 2, atom.Div: 1, atom.Section: 2, atom.Article: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2, atom.Main: 2, atom.Aside: 2,
	atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Table: 2, atom.Tr: 1, atom.Caption: 1,
	atom.Blockquote: 2, atom.Pre: 2, atom.Dl: 2, atom.Dt: 1, atom.Dd: 1, atom.Figure: 2, atom.Figcaption: 1, atom.Form: 2,
	atom.Fieldset: 1, atom.Address: 1, atom.Details: 1, atom.Summary: 1, atom.Title: 2, atom.Ul: 1, atom.Ol: 1, atom.Li: 1,
}

var headings = map[atom.Atom]string{
	atom.Title: "# ", atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ",
}

var marks = map[atom.Atom]string{atom.Strong: "**", atom.B: "**", atom.Em: "_", atom.I: "_", atom.Code: "`"}

func (w *writer) start(t html.Token, closed bool) {
	a := t.DataAtom
	switch {
	case w.hidden != 0:
		if a == w.hidden && !closed {
			w.depth++
		}
		return
	case unseen[a]:
		if !closed {
			w.hidden, w.depth = a, 1
		}
		return
	}
	w.lines(apart[a])
	switch a {
	case atom.Br:
		w.lines(1)
	case atom.Hr:
		w.lines(2)
		w.put("---")
		w.lines(2)
	case atom.Td, atom.Th:
		w.put("| ")
	case atom.Img:
		if alt := strings.TrimSpace(attribute(t, "alt")); alt != "" {
			w.text("[image: " + alt + "]")
		}
	case atom.A:
		w.open(attribute(t, "href"))
	case atom.Pre:
		if w.pre++; w.pre == 1 {
			w.put("```\n")
		}
	case atom.Blockquote:
		w.quotes = min(w.quotes+1, maxNesting)
	default:
		w.startText(a)
	}
}

func (w *writer) startText(a atom.Atom) {
	switch {
	case headings[a] != "":
		w.put(headings[a])
	case marks[a] != "" && w.pre == 0:
		w.put(marks[a])
	case (a == atom.Ul || a == atom.Ol) && len(w.lists) < maxNesting:
		w.lists = append(w.lists, map[atom.Atom]int{atom.Ul: -1, atom.Ol: 0}[a])
	case a == atom.Li:
		w.item()
	}
}

func (w *writer) item() {
	n := len(w.lists)
	if n == 0 {
		w.put("- ")
		return
	}
	mark := "- "
	if w.lists[n-1] >= 0 {
		w.lists[n-1]++
		mark = strconv.Itoa(w.lists[n-1]) + ". "
	}
	w.put(strings.Repeat("  ", n-1) + mark)
}

func (w *writer) end(a atom.Atom) {
	if w.hidden != 0 {
		if a == w.hidden {
			if w.depth--; w.depth == 0 {
				w.hidden = 0
			}
		}
		return
	}
	switch {
	case a == atom.A:
		w.close()
	case a == atom.Pre && w.pre > 0:
		w.pre--
		if w.pre == 0 {
			w.out = append(w.out, "\n```"...)
		}
	case a == atom.Blockquote && w.quotes > 0:
		w.quotes--
	case (a == atom.Ul || a == atom.Ol) && len(w.lists) > 0:
		w.lists = w.lists[:len(w.lists)-1]
	case marks[a] != "" && w.pre == 0:
		w.out = append(w.out, marks[a]...)
	case a == atom.Td || a == atom.Th:
		w.space = true
	}
	w.lines(apart[a])
}

// open begins a link; at most one is open.
func (w *writer) open(href string) {
	w.close()
	u, err := w.base.Parse(strings.TrimSpace(href))
	if err != nil || href == "" || strings.HasPrefix(href, "#") || u.Scheme != "http" && u.Scheme != "https" || len(u.String()) > maxURL {
		return
	}
	w.put("[")
	w.links = append(w.links[:0], link{len(w.out), u.String()})
}

func (w *writer) close() {
	if len(w.links) == 0 {
		return
	}
	l := w.links[0]
	w.links = w.links[:0]
	if strings.TrimSpace(string(w.out[l.from:])) == "" {
		w.out = w.out[:l.from-1] // a link without text
		return
	}
	w.out = append(w.out, "]("+l.to+")"...)
}

// lines asks for n line ends before what comes next.
func (w *writer) lines(n int) { w.fresh = max(w.fresh, n) }

// text writes text with blanks folded, or unchanged in <pre>.
func (w *writer) text(s string) {
	if w.hidden != 0 {
		return
	}
	if w.pre > 0 {
		w.put(s)
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		w.space = w.space || s != ""
		return
	}
	w.space = w.space || strings.TrimLeft(s, " \t\r\n\f") != s
	w.put(strings.Join(words, " "))
	w.space = strings.TrimRight(s, " \t\r\n\f") != s
}

// put writes pending blanks and line ends, then s.
func (w *writer) put(s string) {
	switch {
	case len(w.out) == 0:
	case w.fresh > 0:
		w.out = append(w.out, strings.Repeat("\n", w.fresh)...)
		w.out = append(w.out, strings.Repeat("> ", w.quotes)...)
	case w.space && w.out[len(w.out)-1] != ' ' && w.out[len(w.out)-1] != '[':
		w.out = append(w.out, ' ')
	}
	w.fresh, w.space = 0, false
	w.out = append(w.out, s...)
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
