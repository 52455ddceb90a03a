package phones

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// readMarkup reads a message as Discord's app shows it: the text without its
// markup, and the styles that the markup was for. called names who or what is
// mentioned by a sign, '@' or '#', and an id. Whatever is written, it ends, and
// styles lie within the text; a message has at most a few thousand characters.
//
// The rules are those that Discord documents for its users (support article 210298617,
// "Markdown Text 101"), and the message formatting of its developers' reference.
func readMarkup(source string, called func(sign byte, id string) string) (string, []Style) {
	r := &markupReader{called: called}
	r.read(source, 0)
	return r.out.String(), r.styles
}

// maxNested bounds styles within styles; deeper ones are shown as they are.
const maxNested = 12

type markupReader struct {
	called func(sign byte, id string) string
	out    strings.Builder
	units  int // UTF-16 units written
	styles []Style
}

func (r *markupReader) write(s string) {
	r.out.WriteString(s)
	for _, c := range s {
		r.units++
		if c > 0xffff {
			r.units++
		}
	}
}

// styled writes what inner writes in a style.
func (r *markupReader) styled(s Style, inner func()) {
	at := len(r.styles)
	r.styles = append(r.styles, s)
	s.Offset = r.units
	inner()
	s.Length = r.units - s.Offset
	r.styles[at] = s
}

// read writes s, which begins a line.
func (r *markupReader) read(s string, depth int) {
	before := byte('\n')
	for i := 0; i < len(s); {
		n := 0
		if depth < maxNested {
			if before == '\n' {
				n = r.block(s[i:], depth)
			}
			if n == 0 {
				n = r.inline(s[i:], before, depth)
			}
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s[i:])
			r.write(strings.ToValidUTF8(s[i:i+n], "\ufffd"))
		}
		i += n
		before = s[i-1]
	}
}

var (
	headingForm = core.Pattern(`^(#{1,3}|-#) +([^\n]+)`)
	bulletForm  = core.Pattern(`^( *)[-*] +`)
	fenceForm   = core.Pattern("^```(?:([A-Za-z0-9_+\\-.#]+)\n)?\n*((?s:.+?))\n*```")
)

// block reads what is at the beginning of a line: a quote, a heading, the
// mark of a list. 0: none is there.
func (r *markupReader) block(s string, depth int) int {
	if strings.HasPrefix(s, ">>> ") {
		r.styled(Style{Kind: "blockquote"}, func() { r.read(s[4:], depth+1) })
		return len(s)
	}
	if strings.HasPrefix(s, "> ") {
		return r.quote(s, depth)
	}
	if m := headingForm().FindStringSubmatch(s); m != nil {
		kind := "heading"
		if m[1] == "-#" {
			kind = "subtext"
		}
		r.styled(Style{Kind: kind}, func() { r.read(m[2], depth+1) })
		return len(m[0])
	}
	if m := bulletForm().FindStringSubmatch(s); m != nil {
		r.write(m[1] + "• ")
		return len(m[0])
	}
	return 0
}

// quote reads the lines that begin with "> ".
func (r *markupReader) quote(s string, depth int) int {
	var inner []string
	n := 0
	for n < len(s) && strings.HasPrefix(s[n:], "> ") {
		line, _, more := strings.Cut(s[n:], "\n")
		inner = append(inner, line[2:])
		if n += len(line); more {
			n++
		}
	}
	r.styled(Style{Kind: "blockquote"}, func() { r.read(strings.Join(inner, "\n"), depth+1) })
	if s[n-1] == '\n' {
		r.write("\n")
	}
	return n
}

var (
	angleForm = core.Pattern(`^<(https?://[^\s<>]+)>`)
	emojiForm = core.Pattern(`^<a?(:[A-Za-z0-9_]+:)[0-9]+>`)
	calledOne = core.Pattern(`^<(@!?|#)([0-9]{1,20})>`)
	linkForm  = core.Pattern(`^\[((?:\\.|[^\[\]\\]|\[[^\[\]]*\])+)\]\(<?(https?://[^\s()<>]+)>?\)`)
	bareForm  = core.Pattern("^https?://[^\\s<>\"|`\\\\]+")
)

// inline reads one piece of markup within a line. 0: the next character is
// nothing but itself.
func (r *markupReader) inline(s string, before byte, depth int) int {
	switch s[0] {
	case '\\':
		if c, n := utf8.DecodeRuneInString(s[1:]); n > 0 && c < utf8.RuneSelf && (unicode.IsPunct(c) || unicode.IsSymbol(c)) {
			r.write(s[1 : 1+n])
			return 1 + n
		}
	case '`':
		return r.code(s)
	case '<':
		return r.angle(s)
	case '[':
		return r.link(s, depth)
	case 'h':
		return r.bare(s, before)
	case '*', '_', '~', '|':
		return r.marked(s, before, depth)
	}
	return 0
}

// code reads a fenced block, or code between equal rows of backticks.
func (r *markupReader) code(s string) int {
	if m := fenceForm().FindStringSubmatch(s); m != nil {
		r.styled(Style{Kind: "pre", Language: m[1]}, func() { r.write(m[2]) })
		return len(m[0])
	}
	row := len(s) - len(strings.TrimLeft(s, "`"))
	for at := row; at < len(s); {
		next := strings.IndexByte(s[at:], '`')
		if next < 0 {
			return 0
		}
		at += next
		n := len(s[at:]) - len(strings.TrimLeft(s[at:], "`"))
		if n != row {
			at += n
			continue
		}
		inner := s[row:at]
		if t := strings.TrimSpace(inner); strings.HasPrefix(t, "`") || strings.HasSuffix(t, "`") {
			inner = strings.TrimSuffix(strings.TrimPrefix(inner, " "), " ")
		}
		r.styled(Style{Kind: "code"}, func() { r.write(inner) })
		return at + row
	}
	return 0
}

// angle reads an address, an emoji or a mention between angle brackets.
func (r *markupReader) angle(s string) int {
	if m := angleForm().FindStringSubmatch(s); m != nil {
		r.styled(Style{Kind: "url", URL: m[1]}, func() { r.write(m[1]) })
		return len(m[0])
	}
	if m := emojiForm().FindStringSubmatch(s); m != nil {
		r.write(m[1])
		return len(m[0])
	}
	m := calledOne().FindStringSubmatch(s)
	if m == nil || r.called == nil {
		return 0
	}
	name := r.called(m[1][0], m[2])
	if name == "" {
		return 0
	}
	r.styled(Style{Kind: "mention"}, func() { r.write(name) })
	return len(m[0])
}

func (r *markupReader) link(s string, depth int) int {
	m := linkForm().FindStringSubmatch(s)
	if m == nil || strings.Contains(m[1], "://") { // an address as a label is shown unchanged
		return 0
	}
	r.styled(Style{Kind: "text_link", URL: m[2]}, func() { r.read(m[1], depth+1) })
	return len(m[0])
}

func (r *markupReader) bare(s string, before byte) int {
	url := strings.TrimRight(bareForm().FindString(s), ".,:;!?'*_~()[]")
	if url == "" || url == "http" || url == "https" || !strings.Contains(url, "://") || wordByte(before) {
		return 0
	}
	r.styled(Style{Kind: "url", URL: url}, func() { r.write(url) })
	return len(url)
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// pairs are the marks that enclose text, the longer ones first.
var pairs = []struct{ mark, kind string }{
	{"**", "bold"}, {"__", "underline"}, {"~~", "strikethrough"}, {"||", "spoiler"}, {"*", "italic"}, {"_", "italic"},
}

// marked reads words between two equal marks.
func (r *markupReader) marked(s string, before byte, depth int) int {
	for _, p := range pairs {
		if !strings.HasPrefix(s, p.mark) || p.mark == "_" && wordByte(before) {
			continue
		}
		end := closing(s, p.mark)
		if end < 0 || p.mark == "*" && (s[1] == ' ' || s[end-1] == ' ') {
			continue
		}
		r.styled(Style{Kind: p.kind}, func() { r.inner(s[len(p.mark):end], p.mark[0], depth+1) })
		return end + len(p.mark)
	}
	return 0
}

// inner is read in the middle of a line.
func (r *markupReader) inner(s string, before byte, depth int) {
	for i := 0; i < len(s); {
		n := 0
		if depth < maxNested {
			n = r.inline(s[i:], before, depth)
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s[i:])
			r.write(strings.ToValidUTF8(s[i:i+n], "\ufffd"))
		}
		i += n
		before = s[i-1]
	}
}

// closing finds the mark that ends what s begins with, or -1. One behind a
// backslash is none, nor one that is a part of a longer row; "_" ends at the
// end of a word.
func closing(s, mark string) int {
	for i := len(mark); i+len(mark) <= len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
			continue
		case !strings.HasPrefix(s[i:], mark):
			continue
		}
		row := len(s[i:]) - len(strings.TrimLeft(s[i:], mark[:1]))
		after := byte(0)
		if i+row < len(s) {
			after = s[i+row]
		}
		end := i + row - len(mark) // of a row, the last ones
		switch {
		case i == len(mark): // nothing between
			i += row - 1
		case len(mark) == 1 && row == 2: // of a pair within
			i++
		case mark == "_" && wordByte(after):
			i += row - 1
		default:
			return end
		}
	}
	return -1
}
