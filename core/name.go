package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName bounds a cleaned name, in runes.
const MaxName = 64

// CleanName makes a user's or group's name fit to be shown and to are in
// a prompt: no control, format or bidirectional characters and nothing else that is drawn
// as nothing, white space folded, at most MaxName runes. Joiners stay where writing needs
// them: in emoji, and between letters of scripts that join. It stays hostile text: escape
// it in HTML.
func CleanName(s string) string {
	var b strings.Builder
	space, n := false, 0
	var last, held rune // the last rune that was kept, and a joiner behind it
	flag := false       // last is part of a flag that tags make
	runes := []rune(strings.ToValidUTF8(s, " "))
	for i, r := range runes {
		switch {
		case unicode.IsSpace(r) || r == utf8.RuneError:
			space, held, flag = b.Len() > 0, 0, false
			continue
		case (r == zeroJoiner || r == zeroNonJoiner) && !space && held == 0 && i+1 < len(runes) && joins(last, r, runes[i+1]):
			held = r
			continue
		case unicode.Is(unicode.Variation_Selector, r) && !space && varies(last):
		case isTag(r) && flag && !space && wholeFlag(runes[i:]):
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || strings.ContainsRune(blanks, r),
			unicode.Is(unicode.Variation_Selector, r):
			continue
		}
		need := 1
		if space || held != 0 {
			need = 2
		}
		if n += need; n > MaxName {
			b.WriteRune('…')
			break
		}
		if space {
			b.WriteByte(' ')
		} else if held != 0 {
			b.WriteRune(held)
		}
		b.WriteRune(r)
		flag = r == blackFlag || flag && isTag(r) && r != tagEnd
		last, held, space = r, 0, false
	}
	return b.String()
}

// The characters that join others or forbid it, and those that make flags of regions.
const (
	zeroNonJoiner = '\u200c'
	zeroJoiner    = '\u200d'
	blackFlag     = '\U0001f3f4'
	tagEnd        = '\U000e007f'
)

func isTag(r rune) bool { return r >= '\U000e0020' && r <= tagEnd }

// wholeFlag reports whether tags end as those of a flag do.
func wholeFlag(tags []rune) bool {
	for i, r := range tags {
		if r == tagEnd {
			return true
		}
		if !isTag(r) || i > 8 {
			break
		}
	}
	return false
}

// joining are the scripts in which joiners change how letters are drawn.
var joining = []*unicode.RangeTable{unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan}

// joins reports whether a joiner between two characters is part of writing.
func joins(before, joiner, behind rune) bool {
	if joiner == zeroJoiner && isEmoji(before) && unicode.Is(unicode.So, behind) {
		return true
	}
	return unicode.In(before, joining...) && unicode.In(behind, joining...)
}

// varies reports whether a selector behind r chooses how r is drawn: behind other letters it
// is nothing but a way to make two names of one.
func varies(r rune) bool {
	return r != 0 && (!unicode.IsLetter(r) || unicode.In(r, unicode.Han, unicode.Mongolian, unicode.Phags_Pa, unicode.Myanmar))
}

// isEmoji reports whether r may be the end of an emoji: a symbol, its skin tone, or the
// selector of its picture.
func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || r >= '\U0001f3fb' && r <= '\U0001f3ff' || r == '\ufe0f'
}
