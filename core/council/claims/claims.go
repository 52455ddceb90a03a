// Package claims compares answers by what they claim, without a model: numbers with
// units, dates, yes or no, names and code, and the similarity of the remaining words.
// It decides only what is clear; the rest is for a judge. English and German.
package claims

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gatehouse/core/council/choice"
)

// Bounds of what is compared.
const (
	MaxText    = 16 << 10 // bytes of an answer; the rest is not read
	maxClaims  = 256      // numbers, dates and names of an answer, each
	maxWords   = 8192     // words of an answer
	maxAnswers = 16
)

// Thresholds of the cosine. They are set so that the labelled pairs of the tests are
// decided without a wrong decision; a pair between them is for the judge.
const (
	same    = 0.88 // above, texts without a differing claim agree
	about   = 0.30 // above, texts with the same numbers or dates agree
	parting = 0.60 // above, texts that differ in one claim contradict each other
)

// A Set is the answers to one question.
type Set struct {
	answers []answer
}

// New reads the answers to a question; at most 16 are compared.
func New(question string, texts []string) *Set {
	s := &Set{answers: make([]answer, min(len(texts), maxAnswers))}
	asked := read(question)
	for i := range s.answers {
		s.answers[i] = read(texts[i])
	}
	weigh(&asked, s.answers)
	return s
}

// A Result is what the comparison of two answers found.
type Result struct {
	Relation choice.Relation
	Reason   string // what decided, for the panel; "" of an unclear one
	Cosine   float64
}

// Compare compares two answers.
func (s *Set) Compare(i, j int) Result {
	if i < 0 || j < 0 || i >= len(s.answers) || j >= len(s.answers) {
		return Result{}
	}
	a, b := &s.answers[i], &s.answers[j]
	if i == j || a.folded == b.folded {
		return Result{choice.Agree, "the same text", 1}
	}
	r := Result{Cosine: cosine(a, b)}
	if a.folded == "" || b.folded == "" {
		return r
	}
	r.Relation, r.Reason = decide(a, b, r.Cosine)
	return r
}

// Relation is the relation of two answers.
func (s *Set) Relation(i, j int) choice.Relation { return s.Compare(i, j).Relation }

func decide(a, b *answer, cos float64) (choice.Relation, string) {
	if a.polarity != 0 && b.polarity != 0 && a.polarity != b.polarity {
		return choice.Contradict, "one says yes, the other no"
	}
	if a.code != "" && b.code != "" {
		if a.code == b.code {
			return choice.Agree, "the same code"
		}
		return choice.Unclear, ""
	}
	numbers, dates := compare(a.numbers, b.numbers), compare(a.dates, b.dates)
	if relation, reason := differ(a, b, cos, numbers, dates); relation != choice.Unclear {
		return relation, reason
	}
	if numbers == different || dates == different || numbers == overlap || dates == overlap || a.negations%2 != b.negations%2 {
		return choice.Unclear, ""
	}
	switch {
	case a.polarity != 0 && a.polarity == b.polarity && (cos >= about || numbers == equal || dates == equal || a.bare() || b.bare()):
		return choice.Agree, "both say the same of yes and no"
	case numbers == equal && dates != oneSided && (cos >= about || a.bare() || b.bare()):
		return choice.Agree, "the same numbers"
	case dates == equal && numbers != oneSided && (cos >= about || a.bare() || b.bare()):
		return choice.Agree, "the same dates"
	case numbers == oneSided || dates == oneSided:
		return choice.Unclear, ""
	case short(a, b) && sameNames(a, b):
		return choice.Agree, "the same names"
	case cos >= same && subset(a.names, b.names):
		return choice.Agree, "the same words"
	}
	return choice.Unclear, ""
}

// differ finds a contradiction.
func differ(a, b *answer, cos float64, numbers, dates comparison) (choice.Relation, string) {
	alike := cos >= parting || (a.bare() && b.bare())
	switch {
	case numbers == different && alike && len(a.numbers) <= 2 && len(b.numbers) <= 2:
		return choice.Contradict, "different numbers"
	case dates == different && alike && len(a.dates) <= 2 && len(b.dates) <= 2:
		return choice.Contradict, "different dates"
	case cos >= same && a.negations%2 != b.negations%2 && max(a.words, b.words) <= 40 && numbers != oneSided && dates != oneSided:
		return choice.Contradict, "one is the negation of the other"
	case short(a, b) && alike && otherNames(a, b):
		return choice.Contradict, "different names"
	}
	return choice.Unclear, ""
}

// short reports whether both are so short that their names are what they claim.
func short(a, b *answer) bool { return a.words <= 14 && b.words <= 14 }

type comparison int

const (
	none      comparison = iota // neither has any
	oneSided                    // only one has some
	equal                       // the same, or one has all of the other's
	overlap                     // some are the same
	different                   // of one kind, none of which is the same
	elsewhere                   // of different kinds
)

// compare compares claims: kind → values.
func compare(a, b map[string][]value) comparison {
	if len(a) == 0 && len(b) == 0 {
		return none
	}
	if len(a) == 0 || len(b) == 0 {
		return oneSided
	}
	shared, met, missed := 0, 0, 0
	for kind, values := range a {
		others, ok := b[kind]
		if !ok {
			continue
		}
		shared++
		if len(values) <= len(others) {
			met, missed = meet(values, others, met, missed)
		}
		if len(others) <= len(values) { // of equal counts both are asked, so that the order does not matter
			met, missed = meet(others, values, met, missed)
		}
	}
	switch {
	case shared == 0:
		return elsewhere
	case missed == 0:
		return equal
	case met == 0:
		return different
	}
	return overlap
}

// meet counts the values of few that are among others, and those that are not.
func meet(few, others []value, met, missed int) (int, int) {
	for _, v := range few {
		if slices.ContainsFunc(others, func(o value) bool { return near(v, o) }) {
			met++
		} else {
			missed++
		}
	}
	return met, missed
}

// near reports whether two values may be one, in one of the ways to read them.
func near(a, b value) bool {
	return within(a.of, b.of, max(a.half, b.half)) || a.other != 0 && within(a.other, b.of, b.half) || b.other != 0 && within(a.of, b.other, a.half)
}

// within reports whether two numbers are at most half of the last digit apart that the
// coarser one has, and one percent.
func within(a, b, half float64) bool {
	d := math.Abs(a - b)
	return d <= half && d <= 0.01*max(math.Abs(a), math.Abs(b))
}

// subset reports whether one has all names of the other.
func subset(a, b map[string]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for n := range a {
		if !b[n] {
			return false
		}
	}
	return true
}

func sameNames(a, b *answer) bool {
	return len(a.names) > 0 && len(b.names) > 0 && subset(a.names, b.names)
}

// otherNames reports whether both have names of their own and none of them can be
// another form of one of the other's.
func otherNames(a, b *answer) bool {
	onlyA, onlyB := without(a.names, b.names), without(b.names, a.names)
	if len(onlyA) != 1 || len(onlyB) != 1 {
		return false
	}
	return !variant(onlyA[0], onlyB[0])
}

func without(a, b map[string]bool) []string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(a)) {
		if !b[n] {
			out = append(out, n)
		}
	}
	return out
}

// variant reports whether two names may be forms of one: one is in the other, is its
// initials, or they begin alike.
func variant(a, b string) bool {
	if strings.Contains(a, b) || strings.Contains(b, a) || initials(a) == b || initials(b) == a {
		return true
	}
	if len(a) <= 4 && len(b) > len(a) || len(b) <= 4 && len(a) > len(b) {
		return a[:1] == b[:1] // an abbreviation
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return 2*n >= min(len(a), len(b))
}

func initials(name string) string {
	var b strings.Builder
	for _, w := range strings.Fields(name) {
		b.WriteByte(w[0])
	}
	return b.String()
}
