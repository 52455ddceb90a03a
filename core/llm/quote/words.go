package quote

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stopWords say nothing about what is asked.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a about again all also am an and any are aren't as at be because been but by can can't
		could did didn't do does doesn't doing don't each for from get give had has have having hello help hey hi him his her
		how how's i i'd i'll i'm i've if in into is isn't it it's its just know let let's like may me might more most much my no
		not now of off on once one only or other our out over own please say see she should show so some such tell than
		thank thanks that that's the their them then there these they thing things this those to too up us use very want was
		we were what what's when when's where where's which while who who's why will with without would yes you you're your`) {
		m[w] = true
	}
	return m
}()

// Words returns the search terms of a question: lower case, without stop words and
// repeats, in order, at most 24.
func Words(s string) []string {
	var out []string
	for _, f := range fields(s) {
		w := strings.ToLower(f)
		if !stopWords[w] && len(w) <= 64 && !slices.Contains(out, w) {
			if out = append(out, w); len(out) == maxWords {
				break
			}
		}
	}
	return out
}

// fields returns the runs of letters, digits and inner apostrophes.
func fields(s string) []string {
	parts := strings.FieldsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '’'
	})
	out := parts[:0]
	for _, p := range parts {
		if p = strings.Trim(strings.ReplaceAll(p, "’", "'"), "'"); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// stem removes common English endings from a lower-case term, so that "brewing" finds
// "brew" and "hours" "hour". At least three letters remain.
func stem(w string) string {
	w = strings.TrimSuffix(w, "'s")
	for _, end := range []string{"ing", "ies", "ed", "es", "s", "e", "y"} {
		if rest, ok := strings.CutSuffix(w, end); ok && utf8.RuneCountInString(rest) >= 3 {
			return rest
		}
	}
	return w
}

// heading returns the text of a Markdown heading line ("## Text"); false for other lines.
func heading(line string) (string, bool) {
	rest := strings.TrimLeft(line, "#")
	n := len(line) - len(rest)
	if n == 0 || n > 6 || !strings.HasPrefix(rest, " ") {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// cut shortens s to at most n bytes, between runes and if possible at a blank.

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = strings.ToValidUTF8(s[:n-len("…")], "")
	if i := strings.LastIndexAny(s, " \n\t"); i > len(s)/2 {
		s = s[:i]
	}
	return strings.TrimRight(s, " \n\t") + "…"
}
