// Package score computes what a correction is worth: whether it is stored, how it ages,
// and which ones of a user belong into a prompt. It is pure; all inputs and results are
// numbers from 0 to 1 unless they say otherwise.
package score

import (
	"math"
	"time"

	"gatehouse/core/memory/detect"
)

// A Worth is what is known of a correction when it is made.
type Worth struct {
	Strength  float64 // of the rule that found it
	Reuse     float64 // how likely it is of use again
	Project   float64 // how much it concerns what is being worked on
	Explicit  float64 // how expressly the user asked to remember it
	Severity  float64 // what it would cost to ignore it
	Ambiguity float64 // how unclear it is without its conversation
}

// Store returns the utility of storing a correction.
func Store(w Worth) float64 {
	return clamp(.30*clamp(w.Strength) + .25*clamp(w.Reuse) + .20*clamp(w.Project) + .15*clamp(w.Explicit) + .10*clamp(w.Severity) - .20*clamp(w.Ambiguity))
}

// A Verdict is what is done with a correction.
type Verdict int

// Verdicts, by utility.
const (
	Discard Verdict = iota
	Review          // a card asks its writer
	Save            // it is stored; the writer can undo it
)

// Limits of the verdicts.
const (
	SaveFrom   = .85
	ReviewFrom = .60
)

// Decide returns the verdict on a utility.
func Decide(utility float64) Verdict {
	const rounding = 1e-9 // sums of hundredths
	switch {
	case utility >= SaveFrom-rounding:
		return Save
	case utility >= ReviewFrom-rounding:
		return Review
	}
	return Discard
}

// WorthOf returns what a detected correction is worth. answered reports whether it is
// about the answer before it, topic how many words say what it is about.
func WorthOf(r detect.Result, answered bool, topic int) Worth {
	w := Worth{Strength: r.Strength, Reuse: reuse[r.Type], Project: .5, Severity: severity(r.Domain), Ambiguity: ambiguity(r, topic)}
	if answered || r.Standing || r.Scope != detect.Global {
		w.Project = 1
	}
	switch {
	case r.Layer == detect.Explicit, r.Standing:
		w.Explicit = 1
	case r.Layer == detect.Rules:
		w.Explicit = .5
	}
	if r.Type == detect.Failure {
		w.Severity = 1
	}
	return w
}

var reuse = map[detect.Type]float64{detect.Instruction: 1, detect.Failure: .9, detect.Preference: .9, detect.Decision: .8, detect.Factual: .6}

func severity(domain string) float64 {
	switch domain {
	case "medical", "legal", "finance":
		return 1
	case "code", "math":
		return .7
	}
	return .5
}

// ambiguity returns how unclear a correction is: with few words of its own, or a "maybe".
func ambiguity(r detect.Result, topic int) float64 {
	a := 0.0
	switch {
	case topic == 0:
		a = 1
	case topic == 1:
		a = .4
	}
	if r.Hedged {
		a = max(a, .6)
	}
	return a
}

// A Use is what is known of a stored correction before an answer.
type Use struct {
	Relevance  float64
	Prevention float64 // of a failure
	Importance float64
	Recency    float64
	Confidence float64
	Pinned     bool
	Staleness  float64 // 1 - Decay
	Cost       float64 // share of the room that it takes
}

// MinRelevance is the least relevance of a correction that is not pinned.
const MinRelevance = .25

// Include returns the utility of a correction in a prompt; ok is false where its relevance
// excludes it.
func Include(u Use) (utility float64, ok bool) {
	pinned := 0.0
	if u.Pinned {
		pinned = 1
	}
	utility = clamp(.30*clamp(u.Relevance) + .25*clamp(u.Prevention) + .20*clamp(u.Importance) + .10*clamp(u.Recency) + .10*clamp(u.Confidence) + .05*pinned -
		.20*clamp(u.Staleness) - .15*clamp(u.Cost))
	return utility, u.Pinned || u.Relevance >= MinRelevance
}

// A Class is how fast a correction becomes obsolete.
type Class string

// Classes.
const (
	Never Class = "A" // preferences and instructions
	Slow  Class = "B" // decisions, and facts of slow fields
	Fast  Class = "C" // facts of code, law, medicine, prices and versions
)

// ClassOf returns the class of a type in a domain.
func ClassOf(t detect.Type, domain string) Class {
	switch t {
	case detect.Instruction, detect.Preference:
		return Never
	case detect.Decision:
		return Slow
	}
	switch domain {
	case "code", "legal", "medical", "finance":
		return Fast
	}
	return Slow
}

const year = 8766 * time.Hour // 365.25 days

// halfLives are the times after which half is left; none for Never.
var halfLives = map[Class]time.Duration{Slow: 10 * year, Fast: 3 * year}

// Pruned is the Decay below which a correction is deleted.
const Pruned = .05

// decay returns what is left of a correction after a time: 2^(-age/half-life).
func decay(c Class, age time.Duration) float64 {
	half := halfLives[c]
	if half == 0 || age <= 0 {
		return 1
	}
	return math.Exp2(-float64(age) / float64(half))
}

// PrunedAfter returns the age at which a class is below Pruned, 0 for never.
func PrunedAfter(c Class) time.Duration {
	return time.Duration(float64(halfLives[c]) * math.Log2(1/Pruned))
}

const freshFor = 30 * 24 * time.Hour // half-life of recency

// recency returns how recent something is: half after 30 days.
func recency(age time.Duration) float64 {
	if age <= 0 {
		return 1
	}
	return math.Exp2(-float64(age) / float64(freshFor))
}

// Room of the corrections in a prompt.
const (
	MaxTokens     = 600
	windowPart    = 3 // percent of the model's window
	bytesPerToken = 4
)

// Budget returns the tokens that corrections may take in a window: 600 or 3 %, whichever is
// less. A window of 0 is unknown.
func Budget(window int) int {
	if window <= 0 {
		return MaxTokens
	}
	return min(MaxTokens, window*windowPart/100)
}

// Tokens estimates the tokens of a text.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Similarity compares two canonical keys: twice what they share by what they have.
func Similarity(a, b string) float64 {
	x, y := detect.Words(a), detect.Words(b)
	if len(x) == 0 || len(y) == 0 {
		return 0
	}
	n, j := 0, 0
	for _, w := range x { // both are sorted
		for j < len(y) && y[j] < w {
			j++
		}
		if j < len(y) && y[j] == w {
			n++
		}
	}
	return 2 * float64(n) / float64(len(x)+len(y))
}

// SameTopic is the Similarity from which two corrections of a domain are about the same.
const SameTopic = .8

func clamp(x float64) float64 {
	if !(x > 0) { // also NaN
		return 0
	}
	return min(x, 1)
}
