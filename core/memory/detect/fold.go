package detect

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// folds are letters that users also write otherwise.
var folds = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "’", "'", "‘", "'", "`", "'", "´", "'", "…", "...", "\u00a0", " ")

// Fold returns text as rules read it: without what it quotes, in lower case, with single
// spaces, umlauts in two letters.
func Fold(text string) string {
	text = folds.Replace(strings.ToLower(strings.ToValidUTF8(text, " ")))
	return strings.TrimLeft(strings.Join(strings.Fields(text), " "), "-–—*•>.,;:!\"' ")
}

// Has reports whether all of these folded words occur in text.
func Has(words []string, text string) bool {
	if len(words) == 0 {
		return true
	}
	text = Fold(text)
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// quotes are pairs of marks around quoted text.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '»': '«', '‹': '›', '`': '`'}

// unquoted returns text without quoted text, in whose place is mark, without code and lines
// that begin with ">".
func unquoted(text, mark string) string {
	var lines []string
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			code = !code
		case code, strings.HasPrefix(trimmed, ">"):
		default:
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	end := rune(0)
	rest := strings.Join(lines, "\n")
	for i, r := range rest {
		switch {
		case end != 0 && r == end:
			end = 0
			b.WriteString(mark)
		case end != 0:
		case quotes[r] != 0 && closes(rest[i+utf8.RuneLen(r):], quotes[r]):
			end = quotes[r]
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// closes reports whether a quotation ends, and is longer than a word or two: short quoted
// text is what a correction is about, as in: say "flat", not "apartment".
func closes(rest string, end rune) bool {
	inside, _, ok := strings.Cut(rest, string(end))
	return ok && len(strings.Fields(inside)) > 2
}

// maxSentences bounds what is read of one message.
const maxSentences = 12

// sentences splits a message that was written, without what it quotes.
func sentences(text string) []string { return split(unquoted(strings.ToValidUTF8(text, " "), "x")) }

// split returns the sentences of text.
func split(text string) []string {
	var out []string
	start := 0
	for i, r := range text {
		if r != '.' && r != '!' && r != '?' && r != '\n' && r != '…' {
			continue
		}
		next := text[i+utf8.RuneLen(r):]
		if first, _ := utf8.DecodeRuneInString(next); r != '\n' && next != "" && !unicode.IsSpace(first) { // 3.5, example.com, ?!
			continue
		}
		if r == '.' && abbreviates(text[start:i], next) {
			continue
		}
		if s := strings.TrimSpace(text[start : i+utf8.RuneLen(r)]); s != "" {
			out = append(out, s)
		}
		start = i + utf8.RuneLen(r)
		if len(out) == maxSentences {
			return out
		}
	}
	if s := strings.TrimSpace(text[start:]); s != "" {
		out = append(out, s)
	}
	return out
}

// abbreviates reports whether a full stop ends an abbreviation or a number, not a
// sentence: "z. B.", "e.g. x", "3. Mai".
func abbreviates(before, next string) bool {
	words := strings.Fields(before)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(next, " ")); unicode.IsLower(first) {
		return true
	}
	switch strings.ToLower(strings.Trim(last, "(")) {
	case "z", "b", "d", "h", "dr", "mr", "mrs", "ms", "st", "nr", "no.", "vs", "etc", "bzw", "ca", "prof", "e.g", "i.e", "z.b", "d.h", "u.a":
		return true
	}
	n := strings.TrimRight(last, "0123456789")
	return n == "" && len(last) <= 2 // an ordinal
}

// Words returns the folded words of text that mean something, sorted, each once. At most
// 400 are read.
func Words(text string) []string {
	out := slices.Sorted(words(text))
	return slices.Compact(out)
}

// words yields what Words returns, in the order of the text.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for w := range strings.FieldsFuncSeq(Fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(w) < 2 && !unicode.IsDigit(rune(w[0])) || isStop(w) {
				continue
			}
			if n++; !yield(w) || n == 400 {
				return
			}
		}
	}
}

func isStop(w string) bool {
	for _, l := range languages() {
		if l.stop[w] {
			return true
		}
	}
	return false
}

// MaxCanonical is the largest canonical key, in runes.
const MaxCanonical = 60

// Canonical returns the topic key of a text: its folded words without small ones, sorted,
// at most MaxCanonical runes, no word cut.
func Canonical(text string) string {
	var b strings.Builder
	n := 0
	for _, w := range Words(text) {
		size := utf8.RuneCountInString(w)
		if n > 0 {
			size++
		}
		if n+size > MaxCanonical {
			continue
		}
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
		n += size
	}
	return b.String()
}

// Domain returns the domain that most words of a text belong to, "general" without any.
func Domain(text string) string {
	votes := map[string]int{} // by domain, of which there are ten
	for _, w := range Words(text) {
		for _, l := range languages() {
			for _, d := range l.domains[w] {
				votes[d]++
			}
		}
	}
	best := "general"
	for d, n := range votes {
		if n > votes[best] || n == votes[best] && d < best {
			best = d
		}
	}
	return best
}

// cut returns at most n runes of text.
func cut(text string, n int) string {
	i := 0
	for at := range text {
		if i == n {
			return strings.TrimSpace(text[:at])
		}
		i++
	}
	return text
}
