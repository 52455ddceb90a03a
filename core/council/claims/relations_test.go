package claims

import (
	"slices"
	"testing"

	"gatehouse/core/council/choice"
)

// related returns relations of n answers in which only these pairs are known.
func related(n int, agree, contradict [][2]int) *Relations {
	r := &Relations{}
	for i := range n {
		r.of = append(r.of, make([]choice.Relation, n))
		r.of[i][i] = choice.Agree
	}
	for _, p := range agree {
		r.set(p, choice.Agree)
	}
	for _, p := range contradict {
		r.set(p, choice.Contradict)
	}
	return r
}

func TestAnswersHaveOneClaimOnlyIfNothingTellsThemApart(t *testing.T) {
	for name, c := range map[string]struct {
		of   *Relations
		want []int
	}{
		"nothing is known":                     {related(3, nil, nil), []int{1, 2, 3}},
		"all agree":                            {related(3, [][2]int{{0, 1}, {0, 2}, {1, 2}}, nil), []int{1, 1, 1}},
		"two agree against one":                {related(3, [][2]int{{0, 2}}, [][2]int{{0, 1}, {1, 2}}), []int{1, 2, 1}},
		"one agrees with two that contradict":  {related(3, [][2]int{{0, 1}, {0, 2}}, [][2]int{{1, 2}}), []int{1, 2, 3}},
		"in another order":                     {related(3, [][2]int{{0, 1}, {1, 2}}, [][2]int{{0, 2}}), []int{1, 2, 3}},
		"a chain":                              {related(3, [][2]int{{0, 1}, {1, 2}}, nil), []int{1, 1, 2}},
		"two agree, one of them against one":   {related(3, [][2]int{{0, 1}}, [][2]int{{0, 2}}), []int{1, 1, 2}},
		"two that agree, two that contradict":  {related(4, [][2]int{{0, 1}, {2, 3}}, [][2]int{{0, 2}, {0, 3}, {1, 2}, {1, 3}}), []int{1, 1, 2, 2}},
		"all contradict":                       {related(3, nil, [][2]int{{0, 1}, {0, 2}, {1, 2}}), []int{1, 2, 3}},
		"of one it is not known, two disagree": {related(3, nil, [][2]int{{0, 1}}), []int{1, 2, 3}},
	} {
		if got := c.of.Claims(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAJudgeDecidesOnlyWhatIsUnclear(t *testing.T) {
	r := related(4, [][2]int{{0, 1}}, [][2]int{{0, 2}})
	r.Judge([][2]int{{1, 0}, {3, 0}}) // 0 and 1 agree whatever it says
	if got, want := r.Contradictions(), [][2]int{{0, 2}, {0, 3}}; !slices.Equal(got, want) || r.Unclear() {
		t.Errorf("%v contradict each other, want %v", got, want)
	}
	if r.Of(1, 0) != choice.Agree || r.Of(3, 0) != choice.Contradict || r.Of(1, 3) != choice.Agree || r.Agreeing(0) != 2 {
		t.Errorf("%v", r.of)
	}
}

// A range agrees with each of two numbers that contradict each other.
func TestAnAnswerThatAgreesWithBothSidesHidesNoContradiction(t *testing.T) {
	r := New("How tall is the tower?", []string{"The tower is between 300 m and 330 m tall.", "The tower is 330 m tall.", "The tower is 300 m tall."}).Relations()
	if r.Of(0, 1) != choice.Agree || r.Of(0, 2) != choice.Agree {
		t.Fatalf("%v: the comparison has changed, the case is another one", r.of)
	}
	if got := r.Contradictions(); !slices.Equal(got, [][2]int{{1, 2}}) || !slices.Equal(r.Claims(), []int{1, 2, 3}) {
		t.Errorf("%v contradict each other, the claims are %v", got, r.Claims())
	}
}
