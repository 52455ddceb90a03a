package discord

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/connectors/markdown"
	"gatehouse/core"
)

// Discord has no entities: styles are its own Markdown, in the text itself.
// Here spans become that markup at the moment of sending, and everything else
// is escaped, so that words arrive as words: nothing is styled, linked,
// mentioned or turned into an emoji that the part does not say so.
//
// The rules escaped against are those of Discord's client (a simple-markdown
// grammar): a backslash before any punctuation shows that character.

const (
	// maxLink is the longest target that may hide behind a label, in bytes; a
	// longer one is shown, so that it can be cut like other text.
	maxLink = 512
	// joiner parts two markers that would be read as one. It is not seen.
	joiner = "\u200b"
)

// Size is how long p is once it is written in Discord's markup, in UTF-16 units.
func Size(p core.Part) int { return size(p) }

func size(p core.Part) int { return markdown.UTF16Len(encode(p)) }

// content is what is sent for p, with extra text behind it: with styles,
// without them if that would be too long, as it stands if even escapes have
// no room. False when the bare text is too long.
func content(p core.Part, extra string) (string, bool) {
	p.Text += extra
	for _, s := range []string{encode(p), encode(core.Part{Text: p.Text}), p.Text} {
		if markdown.UTF16Len(s) <= MaxText {
			return s, true
		}
	}
	return "", false
}

// encode writes p in Discord's markup.
func encode(p core.Part) string {
	e := encoder{text: p.Text, lineStart: true}
	e.out.Grow(len(p.Text) + len(p.Text)/8)
	for _, edge := range edges(p) {
		e.upTo(edge.at)
		e.want = edge.open
	}
	e.upTo(len(p.Text))
	e.styles(nil)
	return e.out.String()
}

// An edge is a place, in bytes, from which on other styles hold.
type edge struct {
	at   int
	open []core.Span
}

// A stretch is a span and the bytes that it covers.
type stretch struct {
	core.Span
	from, to int
}

// edges finds where styles change. Spans that lie outside the text, or in
// code, are left out. It is called for every part of every preview: it makes a
// few slices, however many spans there are.
func edges(p core.Part) []edge {
	if len(p.Spans) == 0 {
		return nil
	}
	var units [32]offset // room on the stack for most parts
	var places [32]int
	var stretches [16]stretch
	offsets, all, cuts := byteOffsets(units[:0], p), stretches[:0], places[:0]
	for _, s := range p.Spans {
		from, ok1 := offsets.at(s.Offset)
		to, ok2 := offsets.at(s.Offset + s.Length)
		if ok1 && ok2 && from < to {
			all, cuts = append(all, stretch{s, from, to}), append(cuts, from, to)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	slices.SortStableFunc(all, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	out, flat := make([]edge, 0, len(cuts)), make([]core.Span, 0, len(cuts))
	var room [maxOpen]*stretch
	active := room[:0]
	next := 0
	for _, at := range cuts {
		active = slices.DeleteFunc(active, func(s *stretch) bool { return s.to <= at })
		for ; next < len(all) && all[next].from == at; next++ {
			if len(active) < maxOpen {
				active = append(active, &all[next])
			}
		}
		begin := len(flat)
		flat = flatten(flat, active)
		out = append(out, edge{at, flat[begin:len(flat):len(flat)]})
	}
	return out
}

// maxOpen bounds how many spans over one character count.
const maxOpen = 16

// The order in which styles nest around words, and what stands around code.
var (
	aroundWords = [...]core.Style{core.StyleLink, core.StyleBold, core.StyleItalic, core.StyleStrike}
	aroundCode  = [...]core.Style{core.StyleSpoiler, core.StyleCode}
)

// flatten appends the open spans in the order in which styles nest: quote,
// spoiler, link, bold, italic, strike; code stands alone but for a quote or a
// spoiler. Each once.
func flatten(out []core.Span, open []*stretch) []core.Span {
	add := func(style core.Style) bool {
		i := slices.IndexFunc(open, func(s *stretch) bool { return s.Style == style })
		if i >= 0 {
			out = append(out, open[i].Span)
		}
		return i >= 0
	}
	add(core.StyleQuote)
	if add(core.StylePre) {
		return out
	}
	for _, style := range aroundCode {
		if add(style) && style == core.StyleCode {
			return out
		}
	}
	for _, style := range aroundWords {
		add(style)
	}
	return out
}

// byteOffsets finds the byte of each UTF-16 offset that a span begins or ends at.
// They are appended to out, which is empty.
func byteOffsets(out offsets, p core.Part) offsets {
	for _, s := range p.Spans {
		out = append(out, offset{s.Offset, -1}, offset{s.Offset + s.Length, -1})
	}
	slices.SortFunc(out, func(a, b offset) int { return cmp.Compare(a.unit, b.unit) })
	unit, next := 0, 0
	for i := 0; next < len(out); {
		for ; next < len(out) && out[next].unit <= unit; next++ {
			if out[next].unit == unit {
				out[next].byte = i
			}
		}
		if i == len(p.Text) {
			break
		}
		_, n := utf8.DecodeRuneInString(p.Text[i:])
		i += n
		unit++
		if n == 4 {
			unit++
		}
	}
	return out
}

// An offset is one place in both counts; byte is -1 where the text has no
// character that begins there.
type offset struct{ unit, byte int }

// offsets are in order of their units.
type offsets []offset

// at is the byte of a unit that was looked for.
func (o offsets) at(unit int) (int, bool) {
	i, ok := slices.BinarySearchFunc(o, unit, func(o offset, unit int) int { return cmp.Compare(o.unit, unit) })
	if !ok || o[i].byte < 0 {
		return 0, false
	}
	return o[i].byte, true
}

// An encoder writes a text from left to right.
type encoder struct {
	text      string
	at        int // bytes of text that are written
	out       strings.Builder
	last      byte // the last byte written
	closed    string
	open      []core.Span // whose markers are written
	want      []core.Span // those that hold for what is written next
	quote     bool
	lineStart bool // nothing of this line of the text is written but white space
}

func (e *encoder) raw(s string) {
	if s == "" {
		return
	}
	e.out.WriteString(s)
	e.last = s[len(s)-1]
	e.closed = ""
}

// glue parts what is written next from a marker that it would change.
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

// styles closes what does not hold any more and opens what does.
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
	case core.StylePre, core.StyleCode: // written whole by upTo
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
		} else if from, to := e.bytesOf(s); e.text[from:to] != s.URL && shown.MatchString(s.URL) {
			e.raw(" (<" + s.URL + ">)")
		}
	default:
		m := markers[s.Style]
		if e.last == m[0] && (m == "||" || m == "~~") { // which end at the first two, escaped or not
			e.raw(joiner)
		}
		e.mark(m)
		e.closed = m
	}
}

// hides reports whether a link is written as a label with a target behind it.
// One whose label is an address (Discord shows such a thing as it stands) or
// has brackets that don't pair is written as text, and its target behind it.
func (e *encoder) hides(s core.Span) bool {
	from, to := e.bytesOf(s)
	label := e.text[from:to]
	return len(s.URL) <= maxLink && shown.MatchString(s.URL) && !strings.Contains(label, "://") && paired.MatchString(label)
}

var (
	shown  = regexp.MustCompile(`^[a-z]+:[^\s<>]+$`)
	paired = regexp.MustCompile(`^[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*$`)
)

func (e *encoder) bytesOf(s core.Span) (from, to int) {
	var room [2]offset
	o := byteOffsets(room[:0], core.Part{Text: e.text, Spans: []core.Span{s}})
	from, _ = o.at(s.Offset)
	to, _ = o.at(s.Offset + s.Length)
	return from, to
}

// target is a URL without the characters that would end or style it.
func target(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "_", "%5F", "*", "%2A", "~", "%7E", "|", "%7C", "`", "%60", `\`, "%5C").Replace(url)
}

// upTo writes the text up to the byte end in the styles that hold.
func (e *encoder) upTo(end int) {
	if end <= e.at {
		return
	}
	s := e.text[e.at:end]
	switch {
	case e.has(core.StylePre):
		e.styles(e.want)
		e.pre(s)
	case e.has(core.StyleCode):
		e.styles(e.want)
		e.code(s)
	default:
		e.words(s)
	}
	e.at = end
}

func (e *encoder) has(style core.Style) bool {
	return slices.ContainsFunc(e.want, func(s core.Span) bool { return s.Style == style })
}

var languageForm = regexp.MustCompile(`^[A-Za-z0-9_+\-.#]{1,32}$`)

// pre writes a fenced block. Three backticks inside would end it: they are
// parted.
func (e *encoder) pre(s string) {
	if strings.TrimSpace(s) == "" { // a fence needs something to hold
		e.escape(s)
		return
	}
	lang := e.open[len(e.open)-1].Language
	if !languageForm.MatchString(lang) {
		lang = ""
	}
	for strings.Contains(s, "```") {
		s = strings.ReplaceAll(s, "```", "``"+joiner+"`")
	}
	if s[0] == '\n' { // blank lines at the edges would not be shown
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

// code writes a code span between one backtick, or two around single ones.
// Three would begin a block, so backticks that touch are parted.
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
	if strings.HasPrefix(strings.TrimLeft(s, " "), "`") { // one space beside a backtick is not shown
		s = " " + s
	}
	if strings.HasSuffix(strings.TrimRight(s, " "), "`") {
		s += " "
	}
	e.glue('`')
	e.raw(fence + s + fence)
	e.closed, e.lineStart = "`", false
}
