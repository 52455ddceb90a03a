package sealed

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"unicode/utf8"

	"gatehouse/core/transcript/words"
)

const (
	minPrefix = 3 // characters
	maxPrefix = 8
	tokenSize = 12 // bytes of a token; 16 characters
	maxWords  = 2000
)

// Tokens returns what text is found by: a keyed hash of each of its first 2,000 distinct
// words, and of the prefixes of 3 to 8 characters of these, sorted and without repeats.
// Words are folded as the search index folds them. Who lacks the key learns from the
// tokens only which rows share a word.
func (b *Box) Tokens(text string) []string {
	k := b.all()[0]
	seen := map[string]bool{} // at most maxWords
	var out []string
	for t := range words.Tokens(text) {
		if seen[t.Text] {
			continue
		}
		if len(seen) == maxWords {
			break
		}
		seen[t.Text] = true
		out = append(out, k.token("w", t.Text))
		n := 0
		for i := range t.Text {
			if n >= minPrefix && n <= maxPrefix {
				out = append(out, k.token("p", t.Text[:i]))
			}
			n++
		}
		if n >= minPrefix && n <= maxPrefix {
			out = append(out, k.token("p", t.Text))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Find returns, for each word that a user typed, the tokens of which a row has one if its
// text has a word that begins with it: one for each key, since rows that a rotation has
// not reached have those of an earlier one. A word shorter than 3 or longer than 8
// characters is found whole.
func (b *Box) Find(typed string) [][]string {
	var all [][]string
	for t := range words.Tokens(typed) {
		kind := "w"
		if n := utf8.RuneCountInString(t.Text); n >= minPrefix && n <= maxPrefix {
			kind = "p"
		}
		var one []string
		for _, k := range b.all() {
			one = append(one, k.token(kind, t.Text))
		}
		if all = append(all, one); len(all) == maxTyped {
			break
		}
	}
	return all
}

// maxTyped limits the words of a search.
const maxTyped = 16

// token returns the hash of a word or prefix.
func (k *key) token(kind, text string) string {
	h := hmac.New(sha256.New, k.words)
	h.Write([]byte(kind + "|" + text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:tokenSize])
}
