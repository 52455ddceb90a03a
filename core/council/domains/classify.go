package domains

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"gatehouse/core/council/choice"
)

// Phrases is the set of phrases that the classifier learns from: lines of a domain, a
// colon and a phrase. Empty lines and those that begin with # are not read.
//
//go:embed phrases.txt
var phrases string

const (
	maxQuestion = 2000 // bytes of a question that are read
	maxFeatures = 4000 // of a question

	smoothing  = 0.3
	gramWeight = 0.35 // of a part of a word, against the word
	sharpness  = 0.9  // 1 is the classifier's own certainty over features that are not independent
)

// A classifier finds the root domain of a question by multinomial naive Bayes over
// words, pairs of words and parts of words, in English and German. It is safe for
// concurrent use.
type classifier struct {
	domains []string
	known   map[string][]float64 // feature → logarithm of its probability by domain, less the mean
}

// trained is the classifier that has learned from the phrases of this package, at its first
// use: it takes 850 kB.
var trained = sync.OnceValue(func() *classifier {
	c, err := train(phrases)
	if err != nil {
		panic(err) // the phrases are part of the program, and a test trains with them
	}
	return c
})

// Classify returns the distribution of a question over the root domains, the likeliest
// first. A question without any known word is General.
func Classify(question string) []choice.Share { return trained().classify(question) }

func train(text string) (*classifier, error) {
	c := &classifier{known: map[string][]float64{}}
	index := map[string]int{}
	for _, n := range Roots() {
		index[n.ID] = len(c.domains)
		c.domains = append(c.domains, n.ID)
	}
	totals := make([]float64, len(c.domains))
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		domain, phrase, ok := strings.Cut(line, ":")
		i, known := index[domain]
		if !ok || !known {
			return nil, fmt.Errorf("phrases, line %d: must be a root domain, a colon and a phrase", n)
		}
		features(phrase, func(f string, weight float64) {
			if c.known[f] == nil {
				c.known[f] = make([]float64, len(c.domains))
			}
			c.known[f][i] += weight
			totals[i] += weight
		})
	}
	for i, t := range totals {
		if t == 0 {
			return nil, errors.New("phrases: none of the domain " + c.domains[i])
		}
	}
	vocabulary := float64(len(c.known))
	for _, counts := range c.known {
		mean := 0.0
		for i := range counts {
			counts[i] = math.Log((counts[i] + smoothing) / (totals[i] + smoothing*vocabulary))
			mean += counts[i] / float64(len(counts))
		}
		for i := range counts {
			counts[i] -= mean
		}
	}
	return c, nil
}

func (c *classifier) classify(question string) []choice.Share {
	sums, seen := make([]float64, len(c.domains)), 0.0
	features(question, func(f string, weight float64) {
		for i, v := range c.known[f] {
			sums[i] += weight * v
		}
		if c.known[f] != nil {
			seen += weight
		}
	})
	if seen == 0 {
		return []choice.Share{{Domain: General, Weight: 1}}
	}
	// The features of one word depend on each other: their sum is taken for less.
	scale := sharpness / math.Sqrt(1+seen/4)
	best := sums[0]
	for _, s := range sums {
		best = max(best, s)
	}
	shares := make([]choice.Share, len(sums))
	for i, s := range sums {
		shares[i] = choice.Share{Domain: c.domains[i], Weight: math.Exp((s - best) * scale * 1.5)}
	}
	return choice.Normal(shares)
}

// features yields the features of a text: words, pairs of words, and parts of words
// of four characters.
func features(text string, yield func(feature string, weight float64)) {
	if len(text) > maxQuestion {
		text = strings.ToValidUTF8(text[:maxQuestion], "")
	}
	n, last := 0, ""
	add := func(f string, w float64) {
		if n < maxFeatures {
			n++
			yield(f, w)
		}
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+#%€$=", r)
	}) {
		if len(w) > 40 || stop[w] {
			last = ""
			continue
		}
		if unicode.IsDigit(rune(w[0])) {
			w = "0"
		}
		add(w, 1)
		if last != "" {
			add(last+" "+w, 0.7)
		}
		last = w
		if utf8.RuneCountInString(w) < 5 {
			continue
		}
		r := []rune("_" + w + "_")
		for i := 0; i+4 <= len(r); i++ {
			add("."+string(r[i:i+4]), gramWeight)
		}
	}
}

var stop = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an the of to in on at is are was were be been it its this that these those and or for with by as from i you he she we they my your me do does did has have had can could should would will what which who how when where why
		der die das ein eine einen einem einer eines und oder in im am an auf zu zum zur von vom mit für bei ist sind war waren wird werden es sie er wir ich du ihr man dass wenn als auch sich den dem des mein meine meinen dein kann können hat haben hatte aus nach um wie was wer wo warum welche welcher welches soll nicht not mir mich bitte please`) {
		m[w] = true
	}
	return m
}()

// Factual reports whether a question asks for a fact that is right or wrong: a name, a
// number, a date, a yes or no. Requests to write, translate or chat are not.
func Factual(question string) bool {
	text := strings.ToLower(strings.TrimSpace(question))
	if len(text) > maxQuestion {
		text = text[:maxQuestion]
	}
	first, rest, _ := strings.Cut(text, " ")
	first = strings.Trim(first, "¿¡\"'(,.:;")
	second, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch first {
	case "who", "when", "where", "which", "wer", "wann", "wo", "welche", "welcher", "welches", "welchen", "wieviel", "wieviele", "seit", "since", "whose", "wem", "wen":
		return true
	case "what", "what's", "was":
		return !strings.HasPrefix(rest, "do you think") && !strings.HasPrefix(rest, "meinst du") && !strings.HasPrefix(rest, "hältst du")
	case "how", "wie":
		switch strings.Trim(second, "?,.") {
		case "many", "much", "old", "long", "far", "tall", "high", "deep", "fast", "big", "large", "often", "heavy", "viel", "viele", "alt", "lang", "lange", "weit", "hoch", "tief", "schnell", "groß", "oft", "schwer", "heißt", "hoch?":
			return true
		}
		return false
	case "is", "are", "was?", "were", "does", "did", "has", "ist", "sind", "war", "hat", "gibt", "darf", "muss", "stimmt":
		return true
	case "calculate", "compute", "solve", "define", "berechne", "löse", "definiere", "nenne", "name":
		return true
	}
	return false
}
