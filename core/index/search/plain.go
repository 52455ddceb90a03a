package search

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The syntax of Markdown in one line. What is matched goes, but for its group.
var (
	codeSpan = regexp.MustCompile("`+([^`]+)`+")
	halfSpan = regexp.MustCompile("`+")
	escaped  = regexp.MustCompile("\\\\([\\\\`*_{}\\[\\]()#+.!>~|-])")
	links    = []*regexp.Regexp{
		regexp.MustCompile(`!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]+)\]\]`), // of a wiki
		regexp.MustCompile(`!?\[([^\[\]]+)\]\([^()\s]*(?:\s"[^"]*")?(?:\)|…?$)`),
	}
	leads = []*regexp.Regexp{
		regexp.MustCompile(`(^|\s)#{1,6}\s`),
		regexp.MustCompile(`^(…?)\s?[-*+>]\s`),
		regexp.MustCompile(`\[[ xX]\]\s(\S)`), // a task
	}
	runs = regexp.MustCompile("[*]+|_+|~~")
)

// Shown returns the excerpt and the marks as readers are shown them: those of a text in Markdown
// without its syntax, those of another file as they are.
func (h *Hit) Shown() (string, [][2]int) {
	if ext := strings.ToLower(path.Ext(h.Path)); h.Type == Document && ext != ".md" && ext != ".markdown" {
		return h.Excerpt, h.Marks
	}
	return Plain(h.Excerpt, h.Marks)
}

// Plain returns an excerpt without the syntax of Markdown, for readers, and the marks where
// they are then. Marks that nothing is left of are left out. What is in backticks is text, and
// so is what an author may have meant as code: a mark inside of a word, or one without a pair.
func Plain(text string, marks [][2]int) (string, [][2]int) {
	p := plain{text: text, gone: make([]bool, len(text)), kept: make([]bool, len(text))}
	p.drop(codeSpan, true)
	p.cutSpan()
	p.drop(escaped, true)
	for _, r := range links {
		p.drop(r, false)
	}
	for _, r := range leads {
		p.drop(r, false)
	}
	p.emphasis()
	out := make([]byte, 0, len(text))
	at := make([]int, 0, len(text)+1) // by character of text: the character of out
	n := 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		at = append(at, n)
		if !p.gone[i] {
			out = append(out, text[i:i+size]...)
			n++
		}
		i += size
	}
	at = append(at, n)
	var moved [][2]int
	for _, m := range marks {
		from, to := at[min(max(m[0], 0), len(at)-1)], at[min(max(m[1], 0), len(at)-1)]
		if from < to {
			moved = append(moved, [2]int{from, to})
		}
	}
	return string(out), moved
}

// plain is one call of Plain: by byte, what goes, and what is text whatever it looks like.
type plain struct {
	text       string
	gone, kept []bool
}

// drop removes what r matches but for its group, which is text where literal is set. A bracket
// behind a word is an index.
func (p *plain) drop(r *regexp.Regexp, literal bool) {
	for _, m := range r.FindAllStringSubmatchIndex(p.text, -1) {
		if p.kept[m[0]] || p.gone[m[0]] || p.text[m[0]] == '[' && isWord(p.before(m[0])) {
			continue
		}
		for i := m[0]; i < m[1]; i++ {
			within := m[2] >= 0 && i >= m[2] && i < m[3]
			p.gone[i] = p.gone[i] || !within
			p.kept[i] = p.kept[i] || within && literal
		}
	}
}

// cutSpan removes backticks of which the excerpt has one of the two: what is behind those that
// open is code, in front of those that close, and on both sides where that is not known.
func (p *plain) cutSpan() {
	for _, m := range halfSpan.FindAllStringIndex(p.text, -1) {
		if p.gone[m[0]] || p.kept[m[0]] {
			continue
		}
		before, after := p.before(m[0]), p.after(m[1])
		opens, closes := isSpace(before) && !isSpace(after), !isSpace(before) && isSpace(after)
		for i := range p.text {
			if i < m[0] && !opens || i >= m[1] && !closes {
				p.keep(i)
			}
		}
		p.remove(m[0], m[1])
	}
}

// keep makes the character at i text.
func (p *plain) keep(i int) {
	_, size := utf8.DecodeRuneInString(p.text[i:])
	for ; size > 0; size-- {
		p.kept[i] = !p.gone[i]
		i++
	}
}

// emphasis removes marks of emphasis in pairs, and those of strong text also where the excerpt
// is cut between the two.
func (p *plain) emphasis() {
	type mark struct {
		at   int
		lone bool // also without its pair, where the excerpt is cut
	}
	open := map[string]mark{} // the last of each kind that opens
	for _, m := range runs.FindAllStringIndex(p.text, -1) {
		from, to := m[0], m[1]
		if p.kept[from] || p.gone[from] {
			continue
		}
		before, after, kind := p.before(from), p.after(to), p.text[from:to]
		if isWord(before) && isWord(after) || before == '/' || after == '/' {
			continue // 2**10, snake_case, **/*.go, /* … */
		}
		opens, closes := !isSpace(after) && (isWord(after) || !isWord(before)), !isSpace(before) && (isWord(before) || !isWord(after))
		if kind[0] == '_' { // __init__.py is a name
			_, size := utf8.DecodeRuneInString(p.text[to:])
			closes = closes && (isSpace(after) || !isWord(p.after(min(to+size, len(p.text)))))
		}
		strong := kind == "**" || kind == "***" || kind == "~~" || kind == "__"
		first, paired := open[kind]
		switch {
		case closes && paired:
			p.remove(first.at, first.at+len(kind))
			p.remove(from, to)
			delete(open, kind)
		case closes && strong && !opens && strings.HasPrefix(p.text, "…"):
			p.remove(from, to)
		case opens:
			open[kind] = mark{from, strong && isSpace(before)}
		}
	}
	for kind, m := range open {
		if m.lone && strings.HasSuffix(p.text, "…") {
			p.remove(m.at, m.at+len(kind))
		}
	}
}

func (p *plain) remove(from, to int) {
	for i := from; i < to; i++ {
		p.gone[i] = true
	}
}

// before returns the character in front of i, a space at the beginning.
func (p *plain) before(i int) rune {
	if i == 0 {
		return ' '
	}
	r, _ := utf8.DecodeLastRuneInString(p.text[:i])
	return r
}

// after returns the character at i, a space at the end.
func (p *plain) after(i int) rune {
	if i >= len(p.text) {
		return ' '
	}
	r, _ := utf8.DecodeRuneInString(p.text[i:])
	return r
}

// isSpace reports whether r is white space, or where an excerpt is cut.
func isSpace(r rune) bool { return r == '…' || unicode.IsSpace(r) }

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
