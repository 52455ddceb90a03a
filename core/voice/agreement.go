package voice

import (
	"strings"
	"unicode"
)

const (
	maxWords = 1_000 // of a segment; a transcription that is longer repeats itself
	anchor   = 4     // confirmed words that are looked for in the next transcription
	stray    = 4     // words by which the place of the confirmed ones may differ
)

// An Agreement decides which words of a segment are certain: those on which two
// successive transcriptions agree (LocalAgreement-2). Confirmed text only grows.
// The zero value is an empty segment.
type Agreement struct {
	confirmed []string
	latest    []string // words after the confirmed ones, of the latest pass
}

// Pass adds a transcription of the segment as far as it was spoken.
func (a *Agreement) Pass(text string) {
	next := a.after(wordsOf(text))
	n := 0
	for n < len(next) && n < len(a.latest) && sameWord(next[n], a.latest[n]) {
		n++
	}
	a.confirmed = append(a.confirmed, next[:n]...)
	a.latest = next[n:]
}

// End adds the transcription of the whole segment; all its words are confirmed.
func (a *Agreement) End(text string) {
	a.confirmed = append(a.confirmed, a.after(wordsOf(text))...)
	a.latest = nil
}

// Text returns the confirmed text, the text of the latest pass after it, and that
// pass's last word, which the end of the audio may have cut off.
func (a *Agreement) Text() (confirmed, tentative, interim string) {
	n := max(len(a.latest)-1, 0)
	return joined(a.confirmed), joined(a.latest[:n]), joined(a.latest[n:])
}

// after returns the words of a pass that follow the confirmed ones. The pass may
// have other words in their place, or more or fewer.
func (a *Agreement) after(pass []string) []string {
	at := len(a.confirmed)
	for n := min(anchor, at); n > 0; n-- {
		for off := 0; off <= stray; off++ {
			for _, k := range [2]int{at - off, at + off} {
				if k >= n && k <= len(pass) && sameWords(pass[k-n:k], a.confirmed[at-n:]) {
					return pass[k:]
				}
			}
		}
	}
	return pass[min(at, len(pass)):]
}

func sameWords(a, b []string) bool {
	for i := range a {
		if !sameWord(a[i], b[i]) {
			return false
		}
	}
	return true
}

// sameWord reports whether two words differ in case and punctuation at most.
func sameWord(a, b string) bool { return a == b || bare(a) == bare(b) }

func bare(word string) string {
	word = strings.TrimSpace(word)
	if b := strings.TrimFunc(word, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }); b != "" {
		word = b
	}
	return strings.ToLower(word)
}

// wordsOf splits text into words, each with the space that precedes it. Letters of
// scripts without spaces are words of their own.
func wordsOf(text string) (words []string) {
	for _, field := range strings.Fields(strings.ToValidUTF8(text, "\uFFFD")) {
		word := " "
		for _, r := range field {
			alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
			if alone && strings.TrimSpace(word) != "" {
				words, word = append(words, word), ""
			}
			word += string(r)
			if alone {
				words, word = append(words, word), ""
			}
		}
		if word != "" {
			words = append(words, word)
		}
		if len(words) >= maxWords {
			return words[:maxWords]
		}
	}
	return words
}

func joined(words []string) string { return strings.TrimSpace(strings.Join(words, "")) }
