// Package detect decides whether a message corrects an answer or reports what its writer
// wants in future. It is pure: texts in, a Result out. Four layers are asked in this
// order, and the first that matches ends: an explicit prefix; rules for what is none
// (requests, questions, thanks); rules for what is one; a score of signs. The rules of
// each language are one file in rules.
package detect

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A Type is a kind of correction.
type Type string

// Types of corrections.
const (
	Factual     Type = "factual_correction"
	Instruction Type = "persistent_instruction"
	Preference  Type = "preference"
	Decision    Type = "project_decision"
	Failure     Type = "failure_pattern"
)

// Valid reports whether t is one of the types.
func (t Type) Valid() bool {
	switch t {
	case Factual, Instruction, Preference, Decision, Failure:
		return true
	}
	return false
}

// A Scope is where a correction applies.
type Scope string

// Scopes, from the widest to the narrowest.
const (
	Global       Scope = "global"
	Project      Scope = "project"
	Conversation Scope = "conversation"
)

// Valid reports whether s is one of the scopes.
func (s Scope) Valid() bool { return s == Global || s == Project || s == Conversation }

// A Layer is what decided.
type Layer string

// Layers.
const (
	None     Layer = ""
	Explicit Layer = "explicit" // the prefix "correction:"
	Rules    Layer = "rules"
	Implicit Layer = "implicit" // the score: to be asked
)

// Limits of what is read and returned.
const (
	MaxText   = 2000 // runes of a message that are read; a longer one is no correction, except by prefix
	MaxStored = 500  // runes of a correction
	// Threshold is the implicit score from which a message is a candidate.
	Threshold = 0.45
)

// A Message is what a user wrote after an answer.
type Message struct {
	Text      string
	Answer    string  // the model's answer before it; "" for none, and then only Explicit is possible
	Threshold float64 // of the implicit score; 0 is Threshold
}

// A Result is what a message states.
type Result struct {
	Layer    Layer
	Type     Type
	Scope    Scope
	Text     string  // the writer's own text, at most MaxStored runes
	Strength float64 // of the rule, 0–1; the score of Implicit
	Standing bool    // it is meant for all later answers ("from now on", "always")
	Hedged   bool    // "maybe", "I think"
	Mixed    bool    // it is in a long message with a request: a text of someone else may be in it
	Language string  // of the rules that matched: en, de
	Domain   string
}

// Detect reads a message. Layer is None where it is no correction.
func Detect(m Message) Result {
	if text, ok := prefixed(m.Text); ok {
		return explicit(text)
	}
	if m.Answer == "" || utf8.RuneCountInString(m.Text) > MaxText {
		return Result{}
	}
	all := joined(sentences(m.Text))
	folded, read := make([]string, len(all)), make([]*text, len(all))
	for i := range all {
		folded[i] = Fold(all[i])
		read[i] = newText(folded[i])
	}
	whole := strings.Join(folded, ". ")
	in := likely(whole)
	for i, s := range read {
		if r, ok := positive(s, in); ok && !refused(s, in) { // in this order it is faster, with the same result
			out := r.of(all, i)
			out.Mixed = mixed(read, i, in)
			return out
		}
	}
	score := signs(whole).score(whole, m.Answer, m.threshold())
	if score < m.threshold() || slices.ContainsFunc(read, func(s *text) bool { return refused(s, in) }) {
		return Result{} // a question or a request decides about the whole
	}
	return implicit(m.Text, whole, score)
}

func (m *Message) threshold() float64 {
	if m.Threshold == 0 {
		return Threshold
	}
	return m.Threshold
}

// elsewhere is in place of quoted text in what Undecided reads.
const elsewhere = "\ufffc"

// Undecided returns the sentences of a message that may be corrections although no rule says
// so: those of at least minWords words that are no requests, questions, thanks or idioms. It
// returns none of a message that is too long, and of quoted text, nor a sentence with some.
func Undecided(text string) (out []string) {
	if _, prefixed := prefixed(text); prefixed || utf8.RuneCountInString(text) > MaxText {
		return nil
	}
	for _, s := range joined(split(unquoted(strings.ToValidUTF8(text, " "), elsewhere))) {
		folded := Fold(s)
		if !strings.Contains(s, elsewhere) && len(Words(folded)) >= minWords && !refused(newText(folded), languages()) {
			out = append(out, strings.TrimSpace(s))
		}
	}
	return out
}

// Read returns what a sentence of a message is by a reader's judgement. The scope is the
// narrower one of the reader's and of what the sentence says.
func Read(sentence string, kind Type, scope Scope) Result {
	r := found{rule: rule{kind: kind, weight: 1}, lang: likely(Fold(sentence))[0].name}.of([]string{sentence}, 0)
	r.Scope = Narrower(r.Scope, scope)
	return r
}

// Narrower returns the narrower one of two scopes.
func Narrower(a, b Scope) Scope {
	for _, s := range []Scope{Conversation, Project} {
		if a == s || b == s {
			return s
		}
	}
	return Global
}

// likely returns the languages whose rules are asked about a text: all, unless its small
// words are clearly of one.
func likely(folded string) []*language {
	best, most, next := 0, 0, 0
	all := languages()
	for i, l := range all {
		n := 0
		for w := range strings.FieldsSeq(folded) {
			if l.stop[strings.Trim(w, ".,;:!?")] {
				n++
			}
		}
		if n > most {
			best, most, next = i, n, most
		} else {
			next = max(next, n)
		}
	}
	if most >= 3 && most > 2*next {
		return all[best : best+1]
	}
	return all
}

// prefixed returns the text behind the prefix "correction:" or "Korrektur:".
func prefixed(text string) (string, bool) {
	text = strings.TrimSpace(text)
	for _, prefix := range []string{"correction:", "korrektur:"} {
		if len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
			rest := strings.TrimSpace(text[len(prefix):])
			return rest, rest != ""
		}
	}
	return "", false
}

// maxBeside is how many sentences a message with a correction and a request may have: in a
// longer one the correction may be in a text that the request is about.
const maxBeside = 3

// mixed reports whether a message is so long and has a request, question or the like beside
// the sentence i.
func mixed(read []*text, i int, in []*language) bool {
	if len(read) <= maxBeside {
		return false
	}
	for j, s := range read {
		if j != i && refused(s, in) {
			return true
		}
	}
	return false
}

// explicit returns the result for a text that its writer asks to remember. What kind it
// is states the rule that would match it; without one it is an instruction.
func explicit(text string) Result {
	folded := Fold(text)
	out, ok := positive(newText(folded), languages())
	if !ok {
		out = found{rule: rule{kind: Instruction}, lang: "en"}
	}
	r := out.of([]string{text}, 0)
	r.Layer, r.Strength, r.Standing, r.Text = Explicit, 1, true, cut(text, MaxStored)
	return r
}

// refused reports whether a sentence is a request, a question, thanks or an idiom.
func refused(folded *text, in []*language) bool {
	for _, l := range in {
		if anyOf(l.negative, folded) {
			return true
		}
	}
	return false
}

type found struct {
	rule
	lang string
}

// positive returns the strongest rule that matches a sentence.
func positive(folded *text, in []*language) (best found, ok bool) {
	for _, l := range in {
		for i := range l.positive {
			if r := &l.positive[i]; (!ok || r.weight > best.weight) && r.matches(folded) {
				best, ok = found{*r, l.name}, true
			}
		}
	}
	return best, ok
}

// minWords is how many words that mean something a correction needs to be complete;
// with fewer, the sentence after it belongs to it.
const minWords = 3

// of returns the result for a rule that matched the sentence i of a message.
func (f found) of(all []string, i int) Result {
	text := strings.TrimSpace(all[i])
	if len(Words(text)) < minWords && i+1 < len(all) && !strings.HasSuffix(strings.TrimSpace(all[i+1]), "?") {
		text += " " + strings.TrimSpace(all[i+1])
	}
	folded := newText(Fold(text))
	r := Result{Layer: Rules, Type: f.kind, Scope: Global, Text: cut(text, MaxStored), Strength: f.weight, Language: f.lang, Domain: Domain(text),
		Standing: f.kind == Instruction || f.kind == Decision}
	for _, l := range languages() {
		switch {
		case anyOf(l.conversation, folded):
			r.Scope = Conversation
		case anyOf(l.proj, folded):
			r.Scope = Project
		}
		r.Hedged = r.Hedged || anyOf(l.hedge, folded)
	}
	return r
}

// implicit returns the result of the fourth layer.
func implicit(text, folded string, score float64) Result {
	r := found{rule: rule{kind: Factual, weight: score}, lang: likely(folded)[0].name}.of([]string{strings.TrimSpace(text)}, 0)
	r.Layer, r.Standing = Implicit, false
	return r
}

// Weights of the implicit score.
const (
	ofNegation   = 0.40
	ofBrevity    = 0.20
	ofSimilarity = 0.30
	ofSecond     = 0.10
	maxBrief     = 15 // words
)

// A sign is what a message's own words say of it.
type sign struct{ negation, second, brief bool }

func signs(folded string) (s sign) {
	t := newText(folded)
	for _, l := range languages() {
		s.negation = s.negation || anyOf(l.negation, t)
		s.second = s.second || anyOf(l.second, t)
	}
	n := len(strings.Fields(folded))
	s.brief = n > 0 && n <= maxBrief
	return s
}

// score returns the score of the message with these signs, or 0 if it is below least: whether it can
// reach that is known before the answer's words are looked at, which is most of the work.
func (s sign) score(folded, answer string, least float64) float64 {
	own := 0.0
	if s.brief {
		own += ofBrevity
	}
	if s.second {
		own += ofSecond
	}
	most := own + ofSimilarity
	if s.negation {
		most += ofNegation
	}
	if most < least {
		return 0
	}
	shared := overlap(folded, answer)
	// Most sentences with a "not" deny something else: the answer is denied by one that
	// begins with it, or that repeats some of the answer.
	if s.negation && (shared > 0 || denies(folded)) {
		own += ofNegation
	}
	if own += ofSimilarity * shared; own < least {
		return 0
	}
	return own
}

// overlap returns the share of a message's words that the answer has, 0–1.
func overlap(folded, answer string) float64 {
	missing := map[string]bool{} // of at most 400 words
	for w := range words(folded) {
		missing[w] = true
	}
	all := len(missing)
	if all == 0 {
		return 0
	}
	for w := range words(cut(answer, 4*MaxText)) {
		if delete(missing, w); len(missing) == 0 {
			break
		}
	}
	return float64(all-len(missing)) / float64(all)
}

// denies reports whether a folded text begins with a denial.
func denies(folded string) bool {
	first, _, _ := strings.Cut(folded, " ")
	switch strings.Trim(first, ",.!;:") {
	case "no", "nope", "nah", "wrong", "incorrect", "nein", "nee", "noe", "ne", "falsch":
		return true
	}
	return false
}

// joined returns sentences with a bare "No." put in front of the one behind it.
func joined(all []string) []string {
	if len(all) < 2 || len(strings.Fields(all[0])) != 1 || !denies(Fold(strings.Trim(all[0], ".! "))) {
		return all
	}
	return append([]string{strings.Trim(all[0], ".! ") + ", " + strings.TrimSpace(all[1])}, all[2:]...)
}
