package search

import (
	"regexp"
	"unicode"
	"unicode/utf8"
)

// The syntax of Markdown in one line. What is matched goes, but for its group.
var (
	codeSpan = regexp.MustCompile("`+([^`]+)`+")
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
	runs = regexp.MustCompile("[*]+|_+|~~|`+")
)

// Plain returns an excerpt without the syntax of Markdown, for readers, and the marks where
// they are then. Marks that nothing is left of are left out.
func Plain(text string, marks [][2]int) (string, [][2]int) {
	p := plain{text: text, gone: make([]bool, len(text)), kept: make([]bool, len(text))}
	p.drop(codeSpan, true)
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

// drop removes what r matches but for its group, which is text where literal is set.
func (p *plain) drop(r *regexp.Regexp, literal bool) {
	for _, m := range r.FindAllStringSubmatchIndex(p.text, -1) {
		if p.kept[m[0]] || p.gone[m[0]] {
			continue
		}
		for i := m[0]; i < m[1]; i++ {
			within := m[2] >= 0 && i >= m[2] && i < m[3]
			p.gone[i] = p.gone[i] || !within
			p.kept[i] = p.kept[i] || within && literal
		}
	}
}

// emphasis removes marks of emphasis in pairs, and those of strong text also where the excerpt
// has one of the two.
func (p *plain) emphasis() {
	open := map[string]int{} // by mark: where the last that opens begins, plus one
	for _, m := range runs.FindAllStringIndex(p.text, -1) {
		from, to := m[0], m[1]
		if p.kept[from] || p.gone[from] {
			continue
		}
		mark := p.text[from:to]
		before, _ := utf8.DecodeLastRuneInString(p.text[:from])
		after, _ := utf8.DecodeRuneInString(p.text[to:])
		closes, opens := from > 0 && !unicode.IsSpace(before), to < len(p.text) && !unicode.IsSpace(after)
		if mark[0] == '_' {
			closes, opens = closes && !isWord(after), opens && !isWord(before)
		}
		switch at := open[mark]; {
		case mark == "**" || mark == "***" || mark == "~~" || mark[0] == '`':
			if opens || closes {
				p.remove(from, to)
			}
		case closes && at > 0:
			p.remove(at-1, at-1+len(mark))
			p.remove(from, to)
			delete(open, mark)
		case opens:
			open[mark] = from + 1
		}
	}
}

func (p *plain) remove(from, to int) {
	for i := from; i < to; i++ {
		p.gone[i] = true
	}
}

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
