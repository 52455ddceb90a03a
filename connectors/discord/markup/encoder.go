package markup

import (
	"slices"
	"strings"

	"gatehouse/core"
)

// An encoder writes a text in markup, from left to right.
type encoder struct {
	text      string
	at        int // bytes of text already written
	out       strings.Builder
	last      byte // the last byte written
	closed    string
	open      []core.Span // styles with a written opening marker
	want      []core.Span // styles of the text written next
	quote     bool
	named     bool // a character of an emoji's name, or a colon, follows in other styles
	lineStart bool // only white space of this line is written
}

func (e *encoder) raw(s string) {
	if s == "" {
		return
	}
	e.out.WriteString(s)
	e.last = s[len(s)-1]
	e.closed = ""
}

// glue writes a joiner if next would change the meaning of the closing marker
// before it.
func (e *encoder) glue(next byte) {
	word := next == '_' || next >= '0' && next <= '9' || next >= 'A' && next <= 'Z' || next >= 'a' && next <= 'z'
	switch e.closed {
	case "_":
		if word {
			e.raw(joiner)
		}
	case "**":
		if next == '*' {
			e.raw(joiner)
		}
	case "~~":
		if next == '_' || next == '~' {
			e.raw(joiner)
		}
	case "||":
		if next == '|' {
			e.raw(joiner)
		}
	case "`":
		if next == '`' {
			e.raw(joiner)
		}
	}
	e.closed = ""
}

func same(a, b core.Span) bool {
	return a.Style == b.Style && a.Offset == b.Offset && a.Length == b.Length
}

// styles closes the open styles that are not in want and opens the others.
func (e *encoder) styles(want []core.Span) {
	keep := 0
	for keep < len(e.open) && keep < len(want) && same(e.open[keep], want[keep]) {
		keep++
	}
	for i := len(e.open) - 1; i >= keep; i-- {
		e.shut(e.open[i])
	}
	for _, s := range want[keep:] {
		e.begin(s)
	}
	e.open = want
}

var markers = map[core.Style]string{
	core.StyleBold: "**", core.StyleItalic: "_", core.StyleStrike: "~~", core.StyleSpoiler: "||",
}

func (e *encoder) begin(s core.Span) {
	switch s.Style {
	case core.StyleQuote:
		if e.lineStart && (e.last == '\n' || e.out.Len() == 0) {
			e.quote = true
			e.raw("> ")
		}
	case core.StylePre, core.StyleCode: // upTo writes these as a whole
	case core.StyleLink:
		if e.hides(s) {
			e.glue('[')
			e.raw("[")
		}
	default:
		e.mark(markers[s.Style])
	}
}

func (e *encoder) mark(m string) {
	e.glue(m[0])
	e.raw(m)
}

func (e *encoder) shut(s core.Span) {
	switch s.Style {
	case core.StyleQuote:
		e.quote = false
	case core.StylePre, core.StyleCode:
	case core.StyleLink:
		if e.hides(s) {
			e.raw("](" + target(s.URL) + ")")
		} else if from, to := e.bytesOf(s); e.text[from:to] != s.URL && shown().MatchString(s.URL) {
			e.raw(" (<" + s.URL + ">)")
		}
	default:
		m := markers[s.Style]
		if e.last == m[0] && (m == "||" || m == "~~") { // these end at the first pair, escaped or not
			e.raw(joiner)
		}
		e.mark(m)
		e.closed = m
	}
}

// hides reports whether a link is written as [label](target). A link whose label
// is a URL (Discord shows it unchanged) or has unpaired brackets is written as text,
// followed by its target.
func (e *encoder) hides(s core.Span) bool {
	from, to := e.bytesOf(s)
	label := e.text[from:to]
	return len(s.URL) <= maxLink && shown().MatchString(s.URL) && !strings.Contains(label, "://") && paired().MatchString(label)
}

var (
	shown  = core.Pattern(`^[a-z]+:[^\s<>]+$`)
	paired = core.Pattern(`^[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*$`)
)

func (e *encoder) bytesOf(s core.Span) (from, to int) {
	var room [2]offset
	o := byteOffsets(room[:0], core.Part{Text: e.text, Spans: []core.Span{s}})
	from, _ = o.at(s.Offset)
	to, _ = o.at(s.Offset + s.Length)
	return from, to
}

// target returns url with the characters escaped that would end or style it.
func target(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "_", "%5F", "*", "%2A", "~", "%7E", "|", "%7C", "`", "%60", `\`, "%5C").Replace(url)
}

// upTo writes the text up to byte offset end in the wanted styles.
func (e *encoder) upTo(end int) {
	if end <= e.at {
		return
	}
	s := e.text[e.at:end]
	e.named = end < len(e.text) && emojiPart().MatchString(e.text[end:])
	switch {
	case e.has(core.StylePre):
		e.styles(e.want)
		e.pre(s)
	case e.has(core.StyleCode):
		e.styles(e.want)
		e.code(s)
	default:
		e.plain(s)
	}
	e.at = end
}

func (e *encoder) has(style core.Style) bool {
	return slices.ContainsFunc(e.want, func(s core.Span) bool { return s.Style == style })
}

var languageForm = core.Pattern(`^[A-Za-z0-9_+\-.#]{1,32}$`)

// pre writes a fenced block. Three backticks inside would end it, so they are
// separated by a joiner.
func (e *encoder) pre(s string) {
	if strings.TrimSpace(s) == "" { // an empty fence is not shown as one
		e.escape(s)
		return
	}
	lang := e.open[len(e.open)-1].Language
	if !languageForm().MatchString(lang) {
		lang = ""
	}
	for strings.Contains(s, "```") {
		s = strings.ReplaceAll(s, "```", "``"+joiner+"`")
	}
	if s[0] == '\n' { // blank first and last lines are not shown
		s = joiner + s
	}
	if s[len(s)-1] == '\n' {
		s += joiner
	}
	line := "\n"
	if e.quote {
		line = "\n> "
		s = strings.ReplaceAll(s, "\n", line)
	}
	e.glue('`')
	e.raw("```" + lang + line + s + line + "```")
	e.lineStart = false
}

// code writes a code span in single backticks, or in double ones if s contains
// single ones. Adjacent backticks in s are separated, because three begin a block.
func (e *encoder) code(s string) {
	s = strings.ReplaceAll(s, "\n", " ")
	if e.has(core.StyleSpoiler) {
		s = strings.ReplaceAll(s, "||", "|"+joiner+"|")
	}
	fence := "`"
	if strings.Contains(s, fence) {
		fence = "``"
	}
	for strings.Contains(s, "``") {
		s = strings.ReplaceAll(s, "``", "`"+joiner+"`")
	}
	if strings.HasPrefix(strings.TrimLeft(s, " "), "`") { // one space next to a backtick is not shown
		s = " " + s
	}
	if strings.HasSuffix(strings.TrimRight(s, " "), "`") {
		s += " "
	}
	e.glue('`')
	e.raw(fence + s + fence)
	e.closed, e.lineStart = "`", false
}
