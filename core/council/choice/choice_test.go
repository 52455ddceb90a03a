package choice

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/quick"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func record(observed map[string]Evidence) *Record {
	r := &Record{}
	for d, e := range observed {
		r.Observe(d, e)
	}
	return r
}

func TestReliabilityFallsBackToTheParentDomainTheModelAndOneHalf(t *testing.T) {
	near(t, "a model without evidence", (&Record{}).Reliability("code.python"), 0.5)
	r := record(map[string]Evidence{"code": {Wins: 8, Runs: 8}})
	model := (8 + 8*0.5) / 16
	root := (8 + 8*model) / 16
	near(t, "the model in another domain", r.Reliability("math"), model)
	near(t, "the root", r.Reliability("code"), root)
	near(t, "a subdomain without evidence", r.Reliability("code.python.async"), root)
	r.Observe("code.python", Evidence{Wins: 0, Runs: 4})
	if r.Reliability("code.python") >= r.Reliability("code.rust") {
		t.Error("failures in a subdomain do not lower it")
	}
}

func TestWeightIsCalibratedConfidenceTimesReliabilityRoundedToSixDecimals(t *testing.T) {
	m := Member{Model: "a", Confidence: 0.9, Record: record(map[string]Evidence{"code": {Wins: 3, Runs: 7}})}
	s := Weigh([]Share{{"code", 0.25}, {"math", 0.75}}, m)
	want := 0.9 * (0.25*m.Record.Reliability("code") + 0.75*m.Record.Reliability("math"))
	if s.Weight != math.Round(want*1e6)/1e6 {
		t.Errorf("%v, want %v", s.Weight, want)
	}
	if s := Weigh([]Share{{"code", 1}}, Member{Model: "b", Confidence: math.NaN()}); s.Weight != Round(Unreported*Unknown) {
		t.Errorf("without confidence and record: %+v", s)
	}
}

func TestTiesAreBrokenByReliabilityScoreThenLatencyThenModel(t *testing.T) {
	members := []Member{
		{"d", 0.5, &Record{Score: 70, Latency: 100}}, {"b", 0.5, &Record{Score: 70, Latency: 100}},
		{"slow", 0.5, &Record{Score: 70, Latency: 900}}, {"unknown", 0.5, &Record{Score: 70}},
		{"best", 0.5, &Record{Score: 71, Latency: 5000}},
	}
	want := []string{"best", "b", "d", "slow", "unknown"}
	for range 20 {
		members = append(members[1:], members[0])
		var got []string
		for _, s := range Rank(nil, members) {
			got = append(got, s.Model)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func TestBlendGivesTheClassifierSevenTenths(t *testing.T) {
	q := Blend([]Share{{"code", 1}}, []string{"math", "code", ""})
	if len(q) != 2 || q[0].Domain != "code" {
		t.Fatal(q)
	}
	near(t, "code", q[0].Weight, 0.85)
	near(t, "math", q[1].Weight, 0.15)
	if q := Blend(nil, nil); len(q) != 1 || q[0] != (Share{"general", 1}) {
		t.Error(q)
	}
}

func TestCalibrationIsTheIdentityBelowThirtyOutcomes(t *testing.T) {
	var bins [Bins]Bin
	bins[9] = Bin{Sum: 27.5, Wins: 3, Runs: 29}
	near(t, "29 outcomes", Calibrate(bins).Of(0.95), 0.95)
	bins[9] = Bin{Sum: 28.5, Wins: 3, Runs: 30}
	near(t, "30 outcomes", Calibrate(bins).Of(0.95), 0.1)
}

func TestCalibrationGrowsWithConfidenceAndStaysWithinOneWhateverTheOutcomes(t *testing.T) {
	err := quick.Check(func(wins, runs [Bins]uint8, one, other uint16) bool {
		var bins [Bins]Bin
		for i := range bins {
			n := float64(runs[i])
			bins[i] = Bin{Sum: n * (float64(i) + 0.5) / Bins, Wins: min(float64(wins[i]), n), Runs: n}
		}
		c := Calibrate(bins)
		a, b := float64(one)/math.MaxUint16, float64(other)/math.MaxUint16
		x, y := c.Of(min(a, b)), c.Of(max(a, b))
		return x <= y+1e-12 && x >= 0 && y <= 1
	}, &quick.Config{MaxCount: 2000})
	if err != nil {
		t.Error(err)
	}
}

func TestCalibrationJoinsBinsThatAreInTheWrongOrder(t *testing.T) {
	var bins [Bins]Bin
	bins[5], bins[8] = Bin{Sum: 11, Wins: 15, Runs: 20}, Bin{Sum: 17, Wins: 13, Runs: 20}
	for _, reported := range []float64{0.1, 0.55, 0.7, 0.85, 1} {
		near(t, "both", Calibrate(bins).Of(reported), 0.7)
	}
}

func TestWeightsHaveSixDecimals(t *testing.T) {
	w := Weigh([]Share{{"code", 1}}, Member{"a", 0.7, record(map[string]Evidence{"code": {Wins: 1, Runs: 3}})}).Weight
	if w == 0 || w != Round(w) {
		t.Errorf("%v", w)
	}
}

func TestADistributionHasAtMost32DomainsAndNoRateIsAboveOne(t *testing.T) {
	var shares []Share
	for i := range 2 * MaxDomains {
		shares = append(shares, Share{strings.Repeat("x", i+1), float64(i + 1)})
	}
	q, sum := Normal(shares), 0.0
	for _, s := range q {
		sum += s.Weight
	}
	if len(q) != MaxDomains || q[0].Domain != strings.Repeat("x", 2*MaxDomains) {
		t.Errorf("%d, the first %s", len(q), q[0].Domain)
	}
	near(t, "the sum", sum, 1)
	if v := record(map[string]Evidence{"": {Wins: 90, Runs: 10}, "code": {Wins: math.Inf(1), Runs: 5}}).Reliability("code"); !(v <= 1) {
		t.Errorf("the reliability is %v", v)
	}
}

func TestAVoteDoesNotGoAgainstTheRatersOwnAnswer(t *testing.T) {
	b := Ballot{Rater: 0, Authors: []int{1, 2, 3}}
	relation := func(_, author int) Relation { return []Relation{Unclear, Agree, Contradict, Unclear}[author] }
	for rated, want := range map[float64][]float64{0: {0.5, 0, 0}, 1: {1, 0.5, 1}, 0.5: {0.5, 0.5, 0.5}} {
		for i, v := range b.Votes(map[string]float64{"A": rated, "B": rated, "C": rated}, relation) {
			if v.Value != want[i] {
				t.Errorf("%v for the answer %s counts as %v, want %v", rated, Letter(i), v.Value, want[i])
			}
		}
	}
}

func TestBallotsHaveTheOthersAnswersInAnOrderOfTheSeed(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(40) {
		b := NewBallot(seed, 2, 5)
		if !slices.Equal(b.Authors, NewBallot(seed, 2, 5).Authors) {
			t.Fatal("one seed gives two orders")
		}
		if slices.Contains(b.Authors, 2) || len(b.Authors) != 4 {
			t.Fatal(b.Authors)
		}
		orders[strings.Trim(strings.Join(strings.Fields(Letter(b.Authors[0])+Letter(b.Authors[1])+Letter(b.Authors[2])), ""), " ")] = true
	}
	if len(orders) < 10 {
		t.Errorf("40 seeds give %d orders", len(orders))
	}
}

func scores(weights ...float64) []Score {
	var out []Score
	for i, w := range weights {
		out = append(out, Score{Model: Letter(i), Weight: w, Reliability: w})
	}
	return out
}

func TestPeersChoosesTheAnswerThatTheOthersRateBest(t *testing.T) {
	s := scores(0.9, 0.5, 0.4)
	votes := []Vote{{0, 1, 0.2}, {0, 2, 1}, {1, 0, 0.5}, {1, 2, 0.9}, {2, 0, 0.1}, {2, 1, 0.1}}
	got := Peers(s, votes)
	if got[0].Author != 2 {
		t.Fatalf("%+v", got)
	}
	near(t, "W of the winner", got[0].Welfare, Round((0.9*1+0.5*0.9)/1.4))
	if again := Peers(s, append(slices.Clone(votes), Vote{1, 1, 1}, Vote{7, 0, 1}, Vote{0, 1, 1})); !slices.Equal(again, got) {
		t.Error("a vote for oneself, of a stranger or a second one counts")
	}
}

func TestAMissingVoteNeitherRaisesNorLowersAnAnswer(t *testing.T) {
	s := scores(0.5, 0.5, 0.5)
	all := Peers(s, []Vote{{0, 1, 0.6}, {2, 1, 0.6}, {0, 2, 0.5}, {1, 2, 0.5}})
	some := Peers(s, []Vote{{0, 1, 0.6}, {0, 2, 0.5}, {1, 2, 0.5}})
	if all[0].Author != 1 || some[0].Author != 1 || all[0].Welfare != some[0].Welfare {
		t.Errorf("%+v\n%+v", all, some)
	}
}

func TestARaterWhoseVoteChangesTheChoiceHasAPivot(t *testing.T) {
	s := scores(0.5, 0.5, 0.9)
	got := Peers(s, []Vote{{2, 0, 1}, {2, 1, 0}, {1, 0, 0.4}, {0, 1, 0.6}})
	pivots := map[string]float64{}
	for _, x := range got {
		pivots[x.Model] = x.Pivot
	}
	if got[0].Model != "A" || pivots["C"] <= 0 || pivots["B"] != 0 {
		t.Errorf("%+v", got)
	}
}

// The second member believes a text in the first one's answer that tells it to rate
// that best.
func TestAnAnswerThatTellsItsRatersWhatToRateDoesNotWin(t *testing.T) {
	relation := func(i, j int) Relation { // the first contradicts the other two, who agree
		if i == 0 || j == 0 {
			return Contradict
		}
		return Agree
	}
	s := scores(0.5, 0.5, 0.5)
	var votes []Vote
	ratings := []map[int]float64{0: {1: 0, 2: 0}, 1: {0: 1, 2: 0}, 2: {0: 0.1, 1: 0.9}}
	for rater := range s {
		b := NewBallot(7, rater, 3)
		by := map[string]float64{}
		for i, author := range b.Authors {
			by[Letter(i)] = ratings[rater][author]
		}
		votes = append(votes, b.Votes(by, relation)...)
	}
	if got := Peers(s, votes); got[0].Author == 0 {
		t.Errorf("%+v", got)
	}
}

func TestAtMostOneTurnInTenIsExplored(t *testing.T) {
	members := []Member{{"good", math.NaN(), record(map[string]Evidence{"code": {Wins: 9, Runs: 10}})}, {"new", math.NaN(), nil}, {"bad", math.NaN(), record(map[string]Evidence{"code": {Wins: 1, Runs: 40}})}}
	explored, of := 0, map[string]int{}
	const turns = 20_000
	for seed := range uint64(turns) {
		r := Choose(seed, []Share{{"code", 1}}, members)
		if again := Choose(seed, []Share{{"code", 1}}, members); again.Model != r.Model {
			t.Fatal("one seed gives two members")
		}
		of[r.Model]++
		if r.Explored {
			explored++
		} else if r.Model != "good" {
			t.Fatalf("%+v", r)
		}
	}
	if share := float64(explored) / turns; share > 0.105 || share < 0.095 || of["new"] != explored { // as many as the seeds of these turns decide
		t.Errorf("%d explored, %v", explored, of)
	}
}

// An explored turn is for who has little evidence in the domain, whatever is known of the
// others; with enough about each it is a draw among all.
func TestAnExploredTurnTriesThoseWithLittleEvidence(t *testing.T) {
	known := func(wins, runs float64) *Record {
		return record(map[string]Evidence{"code": {Wins: wins, Runs: runs}, "law": {Wins: 9, Runs: 10}})
	}
	explore := func(members ...Member) map[string]int {
		of := map[string]int{}
		for seed := range uint64(5_000) {
			if r := Choose(seed, []Share{{"code", 1}}, members); r.Explored {
				of[r.Model]++
			}
		}
		return of
	}
	best, second := Member{"best", math.NaN(), known(9, 10)}, Member{"second", math.NaN(), known(8, 10)}
	if of := explore(best, second, Member{"thin", math.NaN(), known(0, 2)}, Member{"none", math.NaN(), nil}); of["second"] != 0 || of["thin"] == 0 || of["none"] == 0 {
		t.Errorf("with little evidence about two: %v", of)
	}
	if of := explore(best, second, Member{"third", math.NaN(), known(1, 3)}); of["second"] <= of["third"] || of["second"] == 0 {
		t.Errorf("with enough about each: %v", of)
	}
}

// Of two members of whom nothing is known, a draw gives the other one half of the time.
func TestSamplingDecidesATenthOfTheTurns(t *testing.T) {
	explored := 0
	const turns = 20_000
	for seed := range uint64(turns) {
		if Choose(seed, nil, []Member{{"a", math.NaN(), nil}, {"b", math.NaN(), nil}}).Explored {
			explored++
		}
	}
	if share := float64(explored) / turns; share < 0.04 || share > 0.06 {
		t.Errorf("%v", share)
	}
}

func TestLabels(t *testing.T) {
	for name, c := range map[string]struct {
		Outcome
		confidence, callout string
	}{
		"two agree":             {Outcome{Asked: 3, Answered: 3, Agreeing: 2}, LabelHigh, ""},
		"a single answer":       {Outcome{Asked: 1, Answered: 1, Agreeing: 1}, LabelMedium, ""},
		"a member is missing":   {Outcome{Asked: 3, Answered: 2, Agreeing: 2}, LabelMedium, ""},
		"medicine":              {Outcome{Asked: 3, Answered: 3, Agreeing: 3, Domain: "medical.dosage"}, LabelMedium, CalloutHighStakes},
		"a dispute":             {Outcome{Asked: 3, Answered: 3, Agreeing: 2, Disputed: true, Domain: "legal"}, LabelUncertain, CalloutDisagreement},
		"an objection":          {Outcome{Asked: 3, Answered: 3, Agreeing: 3, Objected: true}, LabelUncertain, ""},
		"an objection on money": {Outcome{Asked: 1, Answered: 1, Agreeing: 1, Objected: true, Domain: "finance"}, LabelUncertain, CalloutHighStakes},
	} {
		if confidence, callout := Label(c.Outcome); confidence != c.confidence || callout != c.callout {
			t.Errorf("%s: %s, %q", name, confidence, callout)
		}
	}
}
