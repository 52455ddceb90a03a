package choice

import "strings"

// Accuracy levels.
const (
	Fast     = "fast"
	Balanced = "balanced"
	High     = "high"
	Maximum  = "maximum"
)

// Levels returns the accuracy levels, the cheapest first.
func Levels() []string { return []string{Fast, Balanced, High, Maximum} }

// Confidence labels.
const (
	LabelHigh      = "High"
	LabelMedium    = "Medium"
	LabelUncertain = "Uncertain"
)

// Callout types.
const (
	CalloutDisagreement = "disagreement"
	CalloutHighStakes   = "highstakes"
)

// HighStakes reports whether wrong answers in a domain do harm: medicine, law and
// finance.
func HighStakes(domain string) bool {
	root, _, _ := strings.Cut(domain, ".")
	return root == "medical" || root == "legal" || root == "finance"
}

// An Outcome is what is known of an answer when its label is decided.
type Outcome struct {
	Asked    int    // members
	Answered int    // of them
	Agreeing int    // with the answer that is shown, it included
	Disputed bool   // answers contradict each other
	Objected bool   // a reviewer or judge found the answer wrong
	Domain   string // the likeliest
}

// Label returns the confidence label and the callout type of an answer; "" is no
// callout.
func Label(o Outcome) (confidence, callout string) {
	stakes := HighStakes(o.Domain)
	switch {
	case o.Disputed:
		return LabelUncertain, CalloutDisagreement
	case stakes:
		callout = CalloutHighStakes
	}
	switch {
	case o.Objected:
		confidence = LabelUncertain
	case o.Agreeing < 2 || o.Answered < o.Asked || stakes:
		confidence = LabelMedium
	default:
		confidence = LabelHigh
	}
	return confidence, callout
}
