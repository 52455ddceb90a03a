package choice

import (
	"math"
	"math/rand/v2"
	"slices"
)

// MaxExplored is the share of turns in which a member is tried by sampling.
const MaxExplored = 0.1

// A Route is which member is asked.
type Route struct {
	Model    string  `json:"model"`
	Explored bool    `json:"explored"` // by sampling, not the best by weight
	Scores   []Score `json:"scores"`   // of all, the best first
}

// Choose returns the member that is asked first: the best by weight, or in MaxExplored
// of the turns the best of one draw from each one's distribution (Thompson sampling), as
// long as there is little evidence about some of those alone. The seed decides both. Without members the route is empty.
func Choose(seed uint64, q []Share, members []Member) Route {
	q = Normal(q)
	scores := Rank(q, members)
	if len(scores) == 0 {
		return Route{}
	}
	route := Route{Model: scores[0].Model, Scores: scores}
	r := rand.New(rand.NewPCG(seed, 0))
	if len(members) < 2 || r.Float64() >= MaxExplored {
		return route
	}
	some := slices.ContainsFunc(members, func(m Member) bool { return scarce(q, m.Record) })
	best := -1.0
	for _, s := range scores { // in an order that does not depend on the caller's
		i := slices.IndexFunc(members, func(m Member) bool { return m.Model == s.Model })
		if some && !scarce(q, members[i].Record) {
			continue
		}
		if value := sample(r, q, members[i].Record); value > best {
			best, route.Model = value, s.Model
		}
	}
	route.Explored = route.Model != scores[0].Model
	return route
}

// few is how much evidence is little: ten answers that no one corrected.
const few = 3

// scarce reports whether there is little evidence about a model in these domains.
func scarce(q []Share, record *Record) bool {
	n := 0.0
	for _, d := range q {
		if record != nil {
			n += d.Weight * record.Domains[d.Domain].valid().Runs
		}
	}
	return n < few
}

// sampled is how many observations the mean counts for where nothing is known of a
// member: fewer than Prior, so that it is tried often.
const sampled = 2

// sample draws a reliability from what is known of a model in these domains.
func sample(r *rand.Rand, q []Share, record *Record) float64 {
	if record == nil {
		record = &Record{}
	}
	value := 0.0
	for _, d := range q {
		mean := record.Reliability(d.Domain)
		n := record.Domains[d.Domain].valid().Runs + min(record.Domains[""].valid().Runs, Prior) + sampled
		value += d.Weight * beta(r, mean*n, (1-mean)*n)
	}
	return value
}

// beta draws from the beta distribution.
func beta(r *rand.Rand, a, b float64) float64 {
	x, y := gamma(r, a), gamma(r, b)
	if x+y <= 0 {
		return Unknown
	}
	return x / (x + y)
}

// gamma draws from the gamma distribution of scale one, by the method of Marsaglia
// and Tsang.
func gamma(r *rand.Rand, shape float64) float64 {
	if !(shape > 0) {
		return 0
	}
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-r.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - r.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}
