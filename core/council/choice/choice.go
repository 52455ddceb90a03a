// Package choice decides which member of a council is asked and whose answer is
// shown. All of it is computation: the same input gives the same result on every
// machine, random decisions come from a seed that the caller stores.
//
// The weight of a member is W = c · Σ q(d) · r(d): its calibrated confidence, the
// probability of each domain, and its reliability there.
package choice

import (
	"cmp"
	"math"
	"strings"

	"gatehouse/core"
)

// Bounds and constants of the computation.
const (
	// Prior is how many observations the reliability of the parent domain counts
	// for.
	Prior = 8
	// Unknown is the reliability of a model without any evidence.
	Unknown = 0.5
	// Unreported is the confidence of an answer whose member reported none.
	Unreported = 0.5
	// MaxMembers is the most members of a council.
	MaxMembers = 9
	// MaxDomains bounds the domains of a distribution.
	MaxDomains = 32

	tie = 1e-9
)

// Weights of outcomes as evidence. Users correct only some of the wrong answers, so that
// no correction came means little: with 0.3 the rate of a model is near its accuracy
// where three of ten errors are corrected.
const (
	WeightSilence = 0.3 // the user's next turn had no correction
	WeightReview  = 0.7
	WeightUser    = 1.0 // a pick or a correction
)

// Evidence counts the outcomes about a model: picks, verdicts of reviews and
// corrections. That an answer was selected is no evidence. An outcome may count for
// less than one.
type Evidence struct {
	Wins float64 `json:"wins"`
	Runs float64 `json:"runs"`
}

// Add returns the sum of both.
func (e Evidence) Add(o Evidence) Evidence { return Evidence{e.Wins + o.Wins, e.Runs + o.Runs} }

// valid returns e without what no count can be.
func (e Evidence) valid() Evidence {
	if !(e.Runs > 0) || math.IsInf(e.Runs, 0) {
		return Evidence{}
	}
	if !(e.Wins > 0) {
		e.Wins = 0
	}
	e.Wins = min(e.Wins, e.Runs)
	return e
}

// A Record is what is known of a model.
type Record struct {
	// Domains has the evidence by domain. That of a domain includes its
	// subdomains; "" is the model's as a whole.
	Domains map[string]Evidence
	// Calibration maps the confidence that it reports to that which it deserves.
	Calibration Calibration
	// Score is its reliability from 0 to 100, which breaks ties.
	Score int
	// Latency is its usual time to the first token in milliseconds, which breaks
	// ties; 0 is unknown and counts as slow.
	Latency float64
}

// Reliability returns the probability that the model's answer in a domain is right:
// the evidence there, and as Prior further observations the reliability in the
// parent domain, up to the root, the model as a whole, and Unknown.
func (r *Record) Reliability(domain string) float64 {
	value := r.smooth("", Unknown)
	for end := 0; domain != "" && end < len(domain); {
		if i := strings.IndexByte(domain[end:], '.'); i < 0 {
			end = len(domain)
		} else {
			end += i
		}
		value = r.smooth(domain[:end], value)
		end++
	}
	return value
}

func (r *Record) smooth(domain string, parent float64) float64 {
	e := r.Domains[domain].valid()
	return (e.Wins + Prior*parent) / (e.Runs + Prior)
}

// Observe adds an outcome to a domain, the domains above it and the model as a whole.
func (r *Record) Observe(domain string, e Evidence) {
	if r.Domains == nil {
		r.Domains = map[string]Evidence{}
	}
	for _, d := range Path(domain) {
		r.Domains[d] = r.Domains[d].Add(e)
	}
}

// Path returns "", the root of a domain, and each further one down to the domain.
func Path(domain string) []string {
	path := []string{""}
	for i := range len(domain) {
		if domain[i] == '.' && i > 0 {
			path = append(path, domain[:i])
		}
	}
	if domain != "" {
		path = append(path, domain)
	}
	return path
}

// A Share is the probability of a domain.
type Share struct {
	Domain string  `json:"domain"`
	Weight float64 `json:"weight"`
}

// Normal returns the shares with a sum of one, the likeliest first, each domain once,
// at most MaxDomains. Without any that is valid it is all "general".
func Normal(shares []Share) []Share {
	sums, total := map[string]float64{}, 0.0
	for _, s := range shares {
		if s.Weight > 0 && !math.IsInf(s.Weight, 0) {
			sums[s.Domain] += s.Weight
		}
	}
	out := make([]Share, 0, len(sums))
	for d, w := range sums {
		out = append(out, Share{d, w})
	}
	core.Sort(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Domain, b.Domain))
	})
	out = out[:min(len(out), MaxDomains)]
	for _, s := range out {
		total += s.Weight
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return []Share{{"general", 1}}
	}
	for i := range out {
		out[i].Weight /= total
	}
	return out
}

// LocalShare is the part of the classifier in a blended distribution; the members'
// reports have the rest.
const LocalShare = 0.7

// Blend returns the classifier's distribution blended with the domains that members
// reported, each of the same weight. Without reports it is the classifier's.
func Blend(local []Share, reported []string) []Share {
	local = Normal(local)
	var named []Share
	for _, d := range reported {
		if d != "" {
			named = append(named, Share{d, 1})
		}
	}
	if len(named) == 0 {
		return local
	}
	var all []Share
	for _, s := range local {
		all = append(all, Share{s.Domain, LocalShare * s.Weight})
	}
	for _, s := range named {
		all = append(all, Share{s.Domain, (1 - LocalShare) * s.Weight / float64(len(named))})
	}
	return Normal(all)
}

// A Member is one that may be asked, or whose answer may be shown.
type Member struct {
	Model string
	// Confidence is what it reported of its answer, from 0 to 1; NaN is nothing.
	Confidence float64
	Record     *Record
}

// A Score is the weight of a member with its factors.
type Score struct {
	Model       string  `json:"model"`
	Confidence  float64 `json:"confidence"`  // calibrated
	Reliability float64 `json:"reliability"` // Σ q(d) · r(d)
	Weight      float64 `json:"weight"`      // rounded to six decimals

	score   int
	latency float64
}

// Weigh returns the score of a member for a question with these domains, which
// Normal has made.
func Weigh(q []Share, m Member) Score {
	record := m.Record
	if record == nil {
		record = &Record{}
	}
	s := Score{Model: m.Model, Confidence: Unreported, score: record.Score, latency: record.Latency}
	if m.Confidence >= 0 && m.Confidence <= 1 {
		s.Confidence = record.Calibration.Of(m.Confidence)
	}
	for _, d := range q {
		s.Reliability += d.Weight * record.Reliability(d.Domain)
	}
	s.Weight = Round(s.Confidence * s.Reliability)
	return s
}

// Rank returns the scores of the members, the best first. Equal weights are ordered
// by reliability score, latency and model, so the order is always the same.
func Rank(q []Share, members []Member) []Score {
	q = Normal(q)
	scores := make([]Score, len(members))
	for i, m := range members {
		scores[i] = Weigh(q, m)
	}
	core.Sort(scores, func(a, b Score) int {
		if math.Abs(a.Weight-b.Weight) >= tie {
			return cmp.Compare(b.Weight, a.Weight)
		}
		return a.tie(b)
	})
	return scores
}

// tie orders scores of equal weight.
func (s Score) tie(o Score) int {
	return cmp.Or(cmp.Compare(o.score, s.score), cmp.Compare(slow(s.latency), slow(o.latency)), cmp.Compare(s.Model, o.Model))
}

func slow(latency float64) float64 {
	if !(latency > 0) {
		return math.MaxFloat64
	}
	return latency
}

// Round rounds to six decimals.
func Round(v float64) float64 { return math.Round(v*1e6) / 1e6 }
