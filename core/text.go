package core

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// CutRunes returns s cut to at most n bytes, never inside a character, with "…"
// where something was cut.
func CutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// blanks are letters and signs that are drawn as nothing.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

// Visible returns hostile text with everything in it to be seen, for users who
// decide by it: what is drawn as nothing, or turns the direction of writing, is
// spelled out as \u{…}. Line ends and plain spaces stay.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n', r == ' ':
			b.WriteRune(r)
		case !unicode.IsPrint(r), r == utf8.RuneError, unicode.Is(unicode.Variation_Selector, r), strings.ContainsRune(blanks, r):
			fmt.Fprintf(&b, `\u{%X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Pattern returns a regular expression that is compiled when it is first called for, so
// that the start of the program is not slower for it. An invalid one panics then.
//
//go:noinline
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Sort sorts list in place by compare, which returns less than 0 where a precedes b;
// equal elements stay in their order. It is for lists of structures that no message
// waits for: the functions of package slices are faster, but are compiled for each
// structure again, with 15 kB each, while all calls of Sort share one algorithm.
func Sort[E any](list []E, compare func(a, b E) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Counted returns n with its noun: "1 file", "2 files".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
