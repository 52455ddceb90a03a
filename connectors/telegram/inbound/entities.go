package inbound

import "unicode/utf8"

// slice returns the text under e, whose offsets count UTF-16 units; "" when they
// lie outside.
func slice(text string, e entity) string {
	from, to := span(text, e)
	return text[from:to]
}

// span returns where the text under e begins and ends, in bytes; the same number twice when it
// is empty or lies outside.
func span(text string, e entity) (from, to int) {
	if e.Offset < 0 || e.Length <= 0 {
		return 0, 0
	}
	unit, begin := 0, -1
	for i := 0; i <= len(text); {
		if unit == e.Offset && begin < 0 {
			begin = i
		}
		if unit == e.Offset+e.Length && begin >= 0 {
			return begin, i
		}
		if i == len(text) || unit > e.Offset+e.Length {
			break
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
		unit++
		if size == 4 {
			unit++
		}
	}
	return 0, 0
}
