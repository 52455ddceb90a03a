package choice

import (
	"math"
	"math/rand/v2"
	"slices"

	"gatehouse/core"
)

// A Ballot is what one member rates: the answers of the others under letters, in an
// order that reveals nothing about their authors.
type Ballot struct {
	Rater   int   `json:"rater"`
	Authors []int `json:"authors"` // of the answers A, B, …
}

// NewBallot returns the ballot of a rater among n answers, shuffled by the seed.
func NewBallot(seed uint64, rater, n int) Ballot {
	b := Ballot{Rater: rater}
	for i := range n {
		if i != rater {
			b.Authors = append(b.Authors, i)
		}
	}
	r := rand.New(rand.NewPCG(seed, uint64(rater)+1))
	r.Shuffle(len(b.Authors), func(i, j int) { b.Authors[i], b.Authors[j] = b.Authors[j], b.Authors[i] })
	return b
}

// Letter returns the name of the i-th answer of a ballot, from 0.
func Letter(i int) string { return string(rune('A' + i)) }

// A Relation is what the comparison of two answers found.
type Relation int

// Relations of two answers.
const (
	Unclear Relation = iota
	Agree
	Contradict
)

// A Vote is one rating of an answer.
type Vote struct {
	Rater  int     `json:"rater"`
	Author int     `json:"author"`
	Value  float64 `json:"value"`
}

// Votes returns the votes of a ballot from its ratings by letter. A vote goes no
// further than the middle against the rater's own answer: where that agrees with the
// rated one, the value is at least 0.5, where it contradicts it, at most 0.5. So a
// rated text that instructs its raters what to rate cannot win by that. relation may be
// nil.
func (b Ballot) Votes(ratings map[string]float64, relation func(rater, author int) Relation) []Vote {
	var votes []Vote
	for i, author := range b.Authors {
		value, ok := ratings[Letter(i)]
		if !ok || math.IsNaN(value) {
			continue
		}
		value = min(max(value, 0), 1)
		if relation != nil {
			switch relation(b.Rater, author) {
			case Agree:
				value = max(value, 0.5)
			case Contradict:
				value = min(value, 0.5)
			case Unclear:
			}
		}
		votes = append(votes, Vote{b.Rater, author, value})
	}
	return votes
}

// A Standing is the result of an answer among its peers.
type Standing struct {
	Author  int     `json:"author"`
	Model   string  `json:"model"`
	Welfare float64 `json:"welfare"` // W(a), from 0 to 1, rounded to six decimals
	Pivot   float64 `json:"pivot"`   // the Clarke pivot of its author as a rater; for diagnosis only
	Rated   bool    `json:"rated"`   // by at least one other member
}

// Peers returns the standings of the answers, the best first: W(a) = Σ w·v over the
// raters of a, its author left out, with w as the raters' weights of a sum of one, so
// that a missing vote neither raises nor lowers an answer. scores has the weight of
// each author, in order of the authors. Equal ones are ordered as by Rank.
func Peers(scores []Score, votes []Vote) []Standing {
	n := len(scores)
	sums, weights := make([]float64, n), make([]float64, n)
	seen := map[[2]int]bool{}
	var valid []Vote
	for _, v := range votes {
		key := [2]int{v.Rater, v.Author}
		if v.Rater == v.Author || v.Rater < 0 || v.Author < 0 || v.Rater >= n || v.Author >= n || seen[key] || math.IsNaN(v.Value) {
			continue
		}
		seen[key] = true
		v.Value = min(max(v.Value, 0), 1)
		valid = append(valid, v)
		w := rating(scores[v.Rater])
		sums[v.Author] += w * v.Value
		weights[v.Author] += w
	}
	out := make([]Standing, n)
	for i := range out {
		out[i] = Standing{Author: i, Model: scores[i].Model, Rated: weights[i] > 0}
		if out[i].Rated {
			out[i].Welfare = Round(sums[i] / weights[i])
		}
	}
	for i := range out {
		out[i].Pivot = pivot(scores, valid, weights, out, i)
	}
	core.Sort(out, func(a, b Standing) int {
		if d := b.Welfare - a.Welfare; math.Abs(d) >= tie {
			return sign(d)
		}
		if d := scores[b.Author].Weight - scores[a.Author].Weight; math.Abs(d) >= tie {
			return sign(d)
		}
		return scores[a.Author].tie(scores[b.Author])
	})
	return out
}

// rating returns the weight of a rater. It is above zero, so that each vote counts.
func rating(s Score) float64 { return max(s.Weight, 0.01) }

func sign(d float64) int {
	if d < 0 {
		return -1
	}
	return 1
}

// pivot returns what the votes of a rater cost the others: their best total without
// it, less their total for the answer that was chosen with it.
func pivot(scores []Score, votes []Vote, weights []float64, standings []Standing, rater int) float64 {
	others := make([]float64, len(scores))
	for _, v := range votes {
		if v.Rater != rater {
			others[v.Author] += rating(scores[v.Rater]) * v.Value / weights[v.Author]
		}
	}
	chosen := 0
	for i, s := range standings {
		if s.Welfare > standings[chosen].Welfare+tie {
			chosen = i
		}
	}
	if len(others) == 0 {
		return 0
	}
	return max(Round(slices.Max(others)-others[chosen]), 0)
}
