package claims

import "gatehouse/core/council/choice"

// Relations are what is known of each two answers to a question. A pair agrees, contradicts
// each other, or is unclear; nothing of a pair follows from others: what agrees with "330 m"
// and with "300 m" makes these two agree no more.
type Relations struct{ of [][]choice.Relation }

// Relations returns the relations that the comparison has found.
func (s *Set) Relations() *Relations {
	r := &Relations{of: make([][]choice.Relation, len(s.answers))}
	for i := range r.of {
		r.of[i] = make([]choice.Relation, len(s.answers))
		for j := range r.of[i] {
			r.of[i][j] = s.Relation(i, j)
		}
	}
	return r
}

// Of returns the relation of two answers.
func (r *Relations) Of(i, j int) choice.Relation { return r.of[i][j] }

// Unclear reports whether there is a pair of which nothing is known.
func (r *Relations) Unclear() bool { return len(r.pairs(choice.Unclear)) > 0 }

// Contradictions returns the pairs that contradict each other, the lower index in front.
func (r *Relations) Contradictions() [][2]int { return r.pairs(choice.Contradict) }

func (r *Relations) pairs(is choice.Relation) (list [][2]int) {
	for i := range r.of {
		for j := i + 1; j < len(r.of); j++ {
			if r.of[i][j] == is {
				list = append(list, [2]int{i, j})
			}
		}
	}
	return list
}

// Judge decides the unclear pairs: those that a judge names contradict each other, the others
// agree. What the comparison has found stays.
func (r *Relations) Judge(contradict [][2]int) {
	unclear := r.pairs(choice.Unclear)
	for _, p := range unclear {
		r.set(p, choice.Agree)
	}
	for _, p := range contradict {
		for _, open := range unclear {
			if p == open || p == [2]int{open[1], open[0]} {
				r.set(p, choice.Contradict)
			}
		}
	}
}

func (r *Relations) set(p [2]int, to choice.Relation) { r.of[p[0]][p[1]], r.of[p[1]][p[0]] = to, to }

// Agreeing returns how many answers agree with one, it included.
func (r *Relations) Agreeing(i int) (n int) {
	for j := range r.of {
		if r.of[i][j] == choice.Agree {
			n++
		}
	}
	return n
}

// Claims returns a number for each answer, from 1: answers with one number say the same. Each
// two of them agree, and no other answer agrees with one of them and contradicts the other.
// Different numbers say nothing: whether those contradict each other is in Contradictions.
func (r *Relations) Claims() []int {
	claims, last := make([]int, len(r.of)), 0
	for i := range claims {
		for claim := 1; claim <= last && claims[i] == 0; claim++ {
			if r.fits(i, claims, claim) {
				claims[i] = claim
			}
		}
		if claims[i] == 0 {
			last++
			claims[i] = last
		}
	}
	return claims
}

// fits reports whether answer i says the same as all with that claim.
func (r *Relations) fits(i int, claims []int, claim int) bool {
	for j, c := range claims {
		if c != claim {
			continue
		}
		if r.of[i][j] != choice.Agree {
			return false
		}
		for k := range r.of {
			a, b := r.of[i][k], r.of[j][k]
			if a == choice.Agree && b == choice.Contradict || a == choice.Contradict && b == choice.Agree {
				return false
			}
		}
	}
	return true
}
