// Package markup writes styled text in Discord's own Markdown. Discord has no
// entities: styles are part of the text. Everything else is escaped, so that text
// arrives unchanged: nothing is styled, linked, mentioned or turned into an emoji
// unless the part reports it.
//
// The escaped rules are those of Discord's client (a simple-markdown grammar): a
// backslash before punctuation shows that character.
package markup

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"gatehouse/connectors/markdown"
	"gatehouse/core"
)

const (
	// MaxText is the longest content of a message (Create Message: "up to 2000
	// characters"), counted in UTF-16 units, which are never fewer.
	MaxText = 2000
	// maxLink is the longest link target that may be hidden behind a label, in
	// bytes; a longer one is shown, so that it can be split like other text.
	maxLink = 512
	// joiner separates two markers that would be parsed as one. It is invisible.
	joiner = "\u200b"
)

// NewRenderer returns a renderer from Markdown to parts, each at most MaxText less
// reserve UTF-16 units long in Discord's markup.
func NewRenderer(reserve int) *markdown.Renderer {
	return markdown.New(MaxText-reserve, "http", "https").Sized(Size, maxLink)
}

// Size returns the length of p in Discord's markup, in UTF-16 units.
func Size(p core.Part) int { return markdown.UTF16Len(Encode(p)) }

// Fit returns the content to send for p followed by extra: with styles, without
// them if that is too long, or unescaped if escapes do not fit either. It reports
// false when the plain text exceeds MaxText.
func Fit(p core.Part, extra string) (string, bool) {
	p.Text += extra
	for _, s := range []string{Encode(p), Encode(core.Part{Text: p.Text}), p.Text} {
		if markdown.UTF16Len(s) <= MaxText {
			return s, true
		}
	}
	return "", false
}

// Encode returns p in Discord's markup.
func Encode(p core.Part) string {
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

// An edge is a byte offset where the set of styles changes.
type edge struct {
	at   int
	open []core.Span
}

// A stretch is a span and the bytes that it covers.
type stretch struct {
	core.Span
	from, to int
}

// edges returns where styles change, in order. It ignores spans outside the text.
// It runs for every part of every preview and allocates a few slices, however many
// spans there are.
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

// maxOpen limits the spans that apply to one character; more are ignored.
const maxOpen = 16

// Nesting order of styles around plain text and around code.
var (
	aroundWords = [...]core.Style{core.StyleLink, core.StyleBold, core.StyleItalic, core.StyleStrike}
	aroundCode  = [...]core.Style{core.StyleSpoiler, core.StyleCode}
)

// flatten appends the open spans in nesting order, each style once: quote, spoiler,
// link, bold, italic, strike. Code combines with quote and spoiler only.
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

// byteOffsets appends to out, which is empty, the byte offset of each UTF-16 offset
// where a span begins or ends.
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

// An offset is a position in UTF-16 units and in bytes; byte is -1 if no character
// of the text begins there.
type offset struct{ unit, byte int }

// offsets are sorted by unit.
type offsets []offset

// at returns the byte offset of unit, or false if no character begins there.
func (o offsets) at(unit int) (int, bool) {
	i, ok := slices.BinarySearchFunc(o, unit, func(o offset, unit int) int { return cmp.Compare(o.unit, unit) })
	if !ok || o[i].byte < 0 {
		return 0, false
	}
	return o[i].byte, true
}
