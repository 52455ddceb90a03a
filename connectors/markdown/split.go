package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// Split cuts p into parts of at most limit UTF-16 units: at the end of a
// block if one ends in the last three quarters, else of a line, else of a
// word, else between characters as users see them (never inside a surrogate
// pair). Only white space at a cut is dropped. A span that goes over a cut
// goes on in the next part with its link or language; p's buttons are on
// the last part, its quotation of another message on the first. Text that
// is nothing but white space gives no part. limit is at least 2.
func Split(p core.Part, limit int) []core.Part {
	return newCutter(p, limit).split(p)
}

func newCutter(p core.Part, limit int) *cutter {
	c := &cutter{text: p.Text, spans: p.Spans, limit: max(limit, 2)}
	c.findSolid()
	return c
}

func (c *cutter) split(p core.Part) []core.Part {
	parts := make([]core.Part, 0, len(c.text)/c.limit+1)
	for c.at.byte < len(c.text) {
		part, next, ok := c.sized()
		if ok {
			parts = append(parts, part)
		}
		c.at = next
	}
	if n := len(parts); n > 0 {
		parts[n-1].Buttons = p.Buttons
		parts[0].ReplyTo = p.ReplyTo
	}
	return parts
}

// A place is one position in the text, in both counts.
type place struct{ byte, unit int }

type cutter struct {
	text  string
	spans []core.Span
	solid []core.Span // pre, code and link spans in order: what a cut should spare
	limit int
	at    place
	size  func(core.Part) int
}

// sized gives the part that begins at c.at and where the next begins. With a
// size it makes the part shorter until it fits; a single character is taken
// even if it does not.
func (c *cutter) sized() (part core.Part, next place, ok bool) {
	whole := c.limit
	defer func() { c.limit = whole }()
	for {
		end, next := c.cut()
		part, ok := c.part(end)
		if !ok || c.size == nil {
			return part, next, ok
		}
		n := c.size(part)
		units := end.unit - c.at.unit
		if n <= whole || units <= 2 || c.limit <= 2 {
			return part, next, ok
		}
		c.limit = max(2, min(units-1, units*whole/n))
	}
}

// findSolid keeps the spans that change where a cut is good.
func (c *cutter) findSolid() {
	if len(c.spans) == 0 {
		return
	}
	c.solid = make([]core.Span, 0, len(c.spans))
	for _, s := range c.spans {
		switch s.Style {
		case core.StylePre, core.StyleCode, core.StyleLink:
			c.solid = append(c.solid, s)
		}
	}
}

// within returns the style of the solid span that unit lies inside of (not at its
// edges), "" for none. Units must be asked in rising order per part.
func within(solid []core.Span, unit int) ([]core.Span, core.Span) {
	for len(solid) > 0 && solid[0].Offset+solid[0].Length <= unit {
		solid = solid[1:]
	}
	if len(solid) > 0 && solid[0].Offset < unit {
		return solid, solid[0]
	}
	return solid, core.Span{}
}

// candidates are the last good places of each sort seen so far; a zero place is none.
type candidates struct {
	block, line, word, char place
	lineInPre, wordInPre    bool
}

// cut finds where the part that begins at c.at ends, and where the next begins.
func (c *cutter) cut() (end, next place) {
	var best candidates
	var seg clusters
	p, solid := c.at, c.solid
	var in core.Span
	for p.byte < len(c.text) {
		r, size := utf8.DecodeRuneInString(c.text[p.byte:])
		if p.unit > c.at.unit {
			solid, in = within(solid, p.unit)
			c.note(&best, p, r, in)
			if seg.boundary(r) {
				best.char = p
			}
		} else {
			seg.boundary(r)
		}
		units := 1
		if size == 4 {
			units = 2
		}
		if p.unit+units-c.at.unit > c.limit {
			return c.choose(best)
		}
		p = place{p.byte + size, p.unit + units}
	}
	return p, p
}

// note records p as a candidate, when the rune there allows it.
func (c *cutter) note(best *candidates, p place, r rune, in core.Span) {
	isPre := in.Style == core.StylePre
	switch {
	case r == '\n' && !isPre && strings.HasPrefix(c.text[p.byte:], "\n\n"):
		best.block = p
		fallthrough
	case r == '\n':
		best.line, best.lineInPre = p, isPre
	case r == ' ' || r == '\t':
		if isPre || in.Style == "" || in.Length > c.limit/2 {
			best.word, best.wordInPre = p, isPre
		}
	}
}

// choose prefers the larger unit unless it would leave the part too empty.
func (c *cutter) choose(b candidates) (end, next place) {
	quarter := c.at.unit + c.limit/4
	switch {
	case b.block.unit > quarter:
		return b.block, c.skip(b.block, "\n")
	case b.line.unit > quarter && b.lineInPre:
		return b.line, place{b.line.byte + 1, b.line.unit + 1}
	case b.line.unit > quarter:
		return b.line, c.skip(b.line, "\n")
	case b.word.unit > c.at.unit && b.wordInPre:
		after := place{b.word.byte + 1, b.word.unit + 1}
		if after.unit-c.at.unit > c.limit {
			after = b.word
		}
		return after, after
	case b.word.unit > c.at.unit:
		return b.word, c.skip(b.word, " \t\n")
	case b.line.unit > c.at.unit:
		return b.line, place{b.line.byte + 1, b.line.unit + 1}
	case b.char.unit > c.at.unit:
		return b.char, b.char
	}
	_, size := utf8.DecodeRuneInString(c.text[c.at.byte:])
	p := place{c.at.byte + size, c.at.unit + 1 + size/4}
	return p, p
}

// skip goes over the ASCII characters of set from p on.
func (c *cutter) skip(p place, set string) place {
	for p.byte < len(c.text) && strings.IndexByte(set, c.text[p.byte]) >= 0 {
		p.byte++
		p.unit++
	}
	return p
}

// part makes the part from c.at to end with its share of the spans; false
// when nothing but white space is in it.
func (c *cutter) part(end place) (core.Part, bool) {
	text := c.text[c.at.byte:end.byte]
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	if trimmed == "" {
		return core.Part{}, false
	}
	lead := len(trimmed) - len(strings.TrimLeft(trimmed, "\n"))
	trimmed = trimmed[lead:]
	from := c.at.unit + lead
	to := end.unit - UTF16Len(text[lead+len(trimmed):])
	part := core.Part{Text: trimmed, Spans: make([]core.Span, 0, c.touching(from, to))}
	for _, s := range c.spans {
		if s.Offset >= to {
			break // spans are in order of their offset
		}
		begin, stop := max(s.Offset, from), min(s.Offset+s.Length, to)
		if begin < stop {
			s.Offset, s.Length = begin-from, stop-begin
			part.Spans = append(part.Spans, s)
		}
	}
	if len(part.Spans) == 0 {
		part.Spans = nil
	}
	return part, true
}

// touching returns how many spans have something between the units from and to.
func (c *cutter) touching(from, to int) (n int) {
	for _, s := range c.spans {
		if s.Offset >= to {
			break
		}
		if max(s.Offset, from) < min(s.Offset+s.Length, to) {
			n++
		}
	}
	return n
}

// maxCluster bounds how many code points are kept together as one character.
const maxCluster = 32

// clusters finds the borders of characters as users see them, by the parts
// of Unicode's UAX #29 that matter in chats: marks, variation selectors, skin
// tones, joined emoji and flags stay together.
type clusters struct {
	prev  rune
	flags int // regional indicators in a row
	n     int // code points in this cluster
}

// boundary takes the next rune and reports whether a new character begins with it.
func (c *clusters) boundary(r rune) bool {
	prev := c.prev
	c.prev = r
	regional := r >= 0x1F1E6 && r <= 0x1F1FF
	if !regional {
		c.flags = 0
	}
	joined := false
	switch {
	case r < 0x300:
		joined = prev == '\r' && r == '\n'
	case regional:
		joined = c.flags%2 == 1
		c.flags++
	case prev == 0x200D, r == 0x200D, r >= 0xFE00 && r <= 0xFE0F,
		r >= 0x1F3FB && r <= 0x1F3FF, r >= 0xE0020 && r <= 0xE007F:
		joined = true
	default:
		joined = unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc)
	}
	if joined && c.n < maxCluster {
		c.n++
		return false
	}
	c.n = 1
	return true
}
