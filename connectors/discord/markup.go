package discord

import (
	"cmp"
	"slices"
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
