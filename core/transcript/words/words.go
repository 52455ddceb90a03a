// Package words splits text into search tokens: for the index, for queries, and for the
// positions of hits. All three agree by construction, whatever the database's tokenizer
// does.
package words

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A Token is a folded token of a text, and its bytes in the text.
type Token struct {
	Text       string // lower case, without accents; letters, marks and digits only
	Start, End int
}

// maxToken limits a token, in bytes; a longer one is cut.
const maxToken = 64

// Tokens returns the tokens of text, in order: runs of letters, marks and digits. In
// scripts without spaces each character is a token.
func Tokens(text string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		start := -1
		give := func(end int) bool {
			from := start
			start = -1
			folded := fold(text[from:end])
			return folded == "" || yield(Token{folded, from, end})
		}
		for i, r := range text {
			switch {
			case alone(r):
				if start >= 0 && !give(i) {
					return
				}
				start = i
				if !give(i + utf8.RuneLen(r)) {
					return
				}
			case r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsNumber(r) || start >= 0 && unicode.IsMark(r)):
				if start < 0 {
					start = i
				}
			case start >= 0:
				if !give(i) {
					return
				}
			}
		}
		if start >= 0 {
			give(len(text))
		}
	}
}

// alone reports whether r is a token on its own.
func alone(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && unicode.IsLetter(r)
}

// fold returns a token as it is compared.
func fold(word string) string {
	if len(word) <= maxToken && isPlain(word) {
		return strings.ToLower(word)
	}
	if len(word) > 4*maxToken {
		word = word[:4*maxToken]
	}
	word = strings.ToLower(norm.NFKD.String(strings.ToValidUTF8(word, "")))
	word = strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36f || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
			return -1 // an accent, or what a compatible form is taken apart into
		}
		return r
	}, word)
	word = norm.NFC.String(word)
	for len(word) > maxToken {
		_, n := utf8.DecodeLastRuneInString(word)
		word = word[:len(word)-n]
	}
	return word
}

func isPlain(word string) bool {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Index returns text for the index: its tokens separated by single spaces.
func Index(text string) string {
	var b strings.Builder
	for t := range Tokens(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// minStart is the shortest prefix of a token that Starts returns and a Query with Begins
// matches, in characters.
const minStart = 2

// Starts returns the prefixes of text's tokens, for an index of short texts.
func Starts(text string) string {
	var out []string
	for t := range Tokens(text) {
		n := 0
		for i := range t.Text {
			if n >= minStart {
				out = append(out, t.Text[:i])
			}
			n++
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// maxTerms limits the terms of a Query; further ones are ignored.
const maxTerms = 16

// A Query matches texts that contain all of its terms and none of Not; a term is a
// sequence of adjacent tokens.
type Query struct {
	Terms  [][]string
	Not    [][]string
	Begins bool // the last token of the last term may be a prefix
}

// Parse parses what a user typed. There is no syntax: every other character separates
// tokens. Without a token the query has no terms.

func Parse(typed string) Query {
	var q Query
	for piece := range strings.FieldsSeq(typed) {
		q.Add(piece)
	}
	return q
}

// Add adds the tokens of phrase as one term. A term that the query has already, and
// terms past the limit of 16, are ignored.
func (q *Query) Add(phrase string) { q.Terms = with(q.Terms, phrase) }

// Exclude adds the tokens of phrase as a term that a text must not have, within the
// same limits.
func (q *Query) Exclude(phrase string) { q.Not = with(q.Not, phrase) }

func with(terms [][]string, phrase string) [][]string {
	var term []string
	for t := range Tokens(phrase) {
		if term = append(term, t.Text); len(term) == maxTerms {
			break
		}
	}
	if len(term) == 0 || len(terms) == maxTerms || slices.ContainsFunc(terms, func(have []string) bool { return slices.Equal(have, term) }) {
		return terms
	}
	return append(terms, term)
}

// tokens returns all of Tokens.
func tokens(text string) []Token {
	all := make([]Token, 0, len(text)/6)
	for t := range Tokens(text) {
		all = append(all, t)
	}
	return all
}

// Find returns where in text the first term is, in bytes, and whether the query
// matches text.
func (q Query) Find(text string) (start, end int, ok bool) {
	all := tokens(text)
	start = -1
	for i, term := range q.Terms {
		from, to, found := q.place(all, term, q.Begins && i == len(q.Terms)-1)
		if !found {
			return 0, 0, false
		}
		if start < 0 {
			start, end = from, to
		}
	}
	for _, term := range q.Not {
		if _, _, found := q.place(all, term, false); found {
			return 0, 0, false
		}
	}
	return max(0, start), end, true
}

// Marks returns where in text the query's terms are, as numbers of characters: the
// first and the one after the last, in order, at most most of them. It does not ask
// whether the query matches text, which may be a part of what it was found in.
func (q Query) Marks(text string, most int) (marks [][2]int) {
	all := tokens(text)
	for i := 0; i < len(all) && len(marks) < most; i++ {
		if n := q.termAt(all[i:]); n > 0 {
			first := utf8.RuneCountInString(text[:all[i].Start])
			i += n - 1
			marks = append(marks, [2]int{first, utf8.RuneCountInString(text[:all[i].End])})
		}
	}
	return marks
}

// termAt returns how many tokens the longest term that tokens begin with has.
func (q Query) termAt(tokens []Token) (n int) {
	for i, term := range q.Terms {
		if len(term) > n && len(term) <= len(tokens) {
			if _, _, ok := q.place(tokens[:len(term)], term, q.Begins && i == len(q.Terms)-1); ok {
				n = len(term)
			}
		}
	}
	return n
}

func (q Query) place(all []Token, term []string, begins bool) (start, end int, ok bool) {
	last := len(term) - 1
	for i := 0; i+last < len(all); i++ {
		match := true
		for k, word := range term {
			have := all[i+k].Text
			if have != word && !(begins && k == last && strings.HasPrefix(have, word)) {
				match = false
				break
			}
		}
		if match {
			return all[i].Start, all[i+last].End, true
		}
	}
	return 0, 0, false
}

// Excerpt returns about n characters of text around the first term, in one line
// without control characters, with … where text goes on; false where text has
// not all terms.
func (q Query) Excerpt(text string, n int) (string, bool) {
	start, end, ok := q.Find(text)
	if !ok {
		return "", false
	}
	return excerpt(text, start, end, n), true
}

// ExcerptOfAny is Excerpt around the first of the terms that text has, or the beginning of
// text: the others may be elsewhere. What the query excludes does not matter.
func (q Query) ExcerptOfAny(text string, n int) string {
	all := tokens(text)
	for i, term := range q.Terms {
		if start, end, ok := q.place(all, term, q.Begins && i == len(q.Terms)-1); ok {
			return excerpt(text, start, end, n)
		}
	}
	return excerpt(text, 0, 0, n)
}

func excerpt(text string, start, end, n int) string {
	from, to := start, min(end, start+4*n)
	for spare := n - utf8.RuneCountInString(text[from:to]); spare > 0 && (from > 0 || to < len(text)); {
		if from > 0 && (to == len(text) || start-from <= 2*(to-end)) { // a third in front
			_, size := utf8.DecodeLastRuneInString(text[:from])
			from -= size
			spare--
		} else {
			_, size := utf8.DecodeRuneInString(text[to:])
			to += size
			spare--
		}
	}
	from, to = whole(text, from, to, start, end)
	out := oneLine(text[from:to])
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// whole moves the edges of an excerpt to spaces, where there are some near.
func whole(text string, from, to, start, end int) (int, int) {
	if from > 0 {
		if i := strings.IndexAny(text[from:start], " \n\t"); i >= 0 && i < 24 {
			from += i + 1
		}
	}
	if to < len(text) && to > end {
		if i := strings.LastIndexAny(text[end:to], " \n\t"); i >= 0 && to-end-i < 24 {
			to = end + i
		}
	}
	return from, to
}

// oneLine folds white space and drops control and format characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
