package choice

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The simulation: five members with accuracies by domain that the council does not
// know, a classifier that errs, and users who correct 30 % of the errors that they are
// shown. It measures what the choice gains over always asking the best single member.
const (
	simQuestions = 2000
	simLearned   = 500 // turns after which routing is compared with the oracle
	simCorrected = 0.3
	simMistaken  = 0.1  // of the questions the classifier finds another domain
	simCommon    = 0.4  // of the variance of difficulty is that of the question
	simJudge     = 0.85 // of the judge's verdicts are right
	simPopular   = 0.4  // of the wrong answers are the same wrong one
	simOptions   = 6    // other wrong answers
	simSees      = 0.2  // of the right answers that contradict its own a rater that errs recognises
)

var simDomains = []struct {
	name  string
	share float64
}{{"code", 0.28}, {"writing", 0.18}, {"general", 0.16}, {"science", 0.12}, {"finance", 0.10}, {"legal", 0.08}, {"medical", 0.08}}

// simMembers: accuracy by domain, price of an answer, and latency.
var simMembers = []struct {
	model    string
	accuracy []float64
	price    float64
	latency  float64
}{
	{"alpha", []float64{0.88, 0.70, 0.76, 0.70, 0.62, 0.66, 0.64}, 1.0, 900},
	{"beta", []float64{0.68, 0.87, 0.72, 0.66, 0.64, 0.80, 0.62}, 1.0, 800},
	{"gamma", []float64{0.64, 0.68, 0.80, 0.86, 0.66, 0.62, 0.84}, 0.9, 700},
	{"delta", []float64{0.62, 0.66, 0.72, 0.68, 0.86, 0.68, 0.66}, 0.8, 600},
	{"epsilon", []float64{0.56, 0.60, 0.68, 0.60, 0.58, 0.56, 0.58}, 0.3, 300},
}

// simulated is a council that learns.
type simulated struct {
	r       *rand.Rand
	records []*Record
	bins    [][Bins]Bin
}

func newSimulated(seed uint64) *simulated {
	s := &simulated{r: rand.New(rand.NewPCG(seed, 1)), bins: make([][Bins]Bin, len(simMembers))}
	for _, m := range simMembers {
		s.records = append(s.records, &Record{Score: 70, Latency: m.latency})
	}
	return s
}

// a question of the simulation: what everyone answers is drawn before anyone is asked,
// so that the levels answer the same ones.
type question struct {
	domain     int
	classified []Share
	claims     []int // of the members: 0 is right
	confidence []float64
}

func draw(r *rand.Rand) question {
	x, d := r.Float64(), 0
	for d < len(simDomains)-1 && x >= simDomains[d].share {
		x -= simDomains[d].share
		d++
	}
	found := d
	if r.Float64() < simMistaken {
		found = r.IntN(len(simDomains))
	}
	q := question{domain: d, classified: []Share{{simDomains[found].name, 0.8}, {simDomains[r.IntN(len(simDomains))].name, 0.2}}}
	hard := r.NormFloat64()
	for _, m := range simMembers {
		claim, confidence := 0, 0.85+0.08*r.NormFloat64()
		// the marginal is the accuracy; what is hard for one is hard for all
		if math.Sqrt2*math.Erfinv(2*m.accuracy[d]-1) < math.Sqrt(simCommon)*hard+math.Sqrt(1-simCommon)*r.NormFloat64() {
			claim, confidence = 1, 0.75+0.10*r.NormFloat64()
			if r.Float64() >= simPopular {
				claim = 2 + r.IntN(simOptions)
			}
		}
		q.claims, q.confidence = append(q.claims, claim), append(q.confidence, min(max(confidence, 0), 1))
	}
	return q
}

func (s *simulated) members(confidence []float64) []Member {
	var out []Member
	for i, m := range simMembers {
		c := math.NaN()
		if confidence != nil {
			c = confidence[i]
			s.records[i].Calibration = Calibrate(s.bins[i])
		}
		out = append(out, Member{m.model, c, s.records[i]})
	}
	return out
}

func index(model string) int {
	for i, m := range simMembers {
		if m.model == model {
			return i
		}
	}
	return -1
}

// learn counts an outcome for a member, as the ledger does.
func (s *simulated) learn(q *question, member int, correct bool, weight float64) {
	e := Evidence{Runs: weight}
	if correct {
		e.Wins = weight
	}
	s.records[member].Observe(Normal(q.classified)[0].Domain, e)
	b := &s.bins[member][BinOf(q.confidence[member])]
	b.Sum, b.Wins, b.Runs = b.Sum+weight*q.confidence[member], b.Wins+e.Wins, b.Runs+weight
}

// one asks one member, as fast and the primary of balanced do.
func (s *simulated) one(seed uint64, q *question) int {
	i := index(Choose(seed, q.classified, s.members(nil)).Model)
	s.user(q, i, []int{i})
	return i
}

// user is the next turn: a correction of some errors, or silence.
func (s *simulated) user(q *question, shown int, asked []int) {
	correct, weight := true, WeightSilence
	if q.claims[shown] != 0 && s.r.Float64() < simCorrected {
		correct, weight = false, WeightUser
	}
	for _, i := range asked {
		switch {
		case q.claims[i] == q.claims[shown]:
			s.learn(q, i, correct, weight)
		case correct:
			s.learn(q, i, false, weight)
		}
	}
}

// all asks every member, has each rate the others, and shows the best answer.
func (s *simulated) all(seed uint64, q *question) int {
	n := len(simMembers)
	relation := func(i, j int) Relation {
		if q.claims[i] == q.claims[j] {
			return Agree
		}
		return Contradict
	}
	var scores []Score
	shares := Normal(q.classified)
	for _, m := range s.members(q.confidence) {
		scores = append(scores, Weigh(shares, m))
	}
	var votes []Vote
	for rater := range n {
		b := NewBallot(seed, rater, n)
		ratings := map[string]float64{}
		for k, author := range b.Authors {
			v := 0.2 + 0.15*s.r.NormFloat64()
			if q.claims[rater] == q.claims[author] {
				v = 0.85 + 0.1*s.r.NormFloat64()
			} else if q.claims[author] == 0 && s.r.Float64() < simSees {
				v = 0.7
			}
			ratings[Letter(k)] = v
		}
		votes = append(votes, b.Votes(ratings, relation)...)
	}
	shown := Peers(scores, votes)[0].Author
	disputed := false
	for i := range n {
		disputed = disputed || q.claims[i] != q.claims[shown]
	}
	asked := []int{0, 1, 2, 3, 4}
	if !disputed {
		s.user(q, shown, asked)
		return shown
	}
	// The reviewer's verdict spreads over the claims.
	verdict := (q.claims[shown] == 0) == (s.r.Float64() < simJudge)
	for _, i := range asked {
		if same := q.claims[i] == q.claims[shown]; same || verdict {
			s.learn(q, i, same == verdict, WeightReview)
		}
	}
	// In a dispute some users pick the right option, where there is one; others do not
	// pick, which says nothing.
	if s.r.Float64() < simCorrected {
		for _, i := range asked {
			if q.claims[i] == 0 {
				for _, j := range asked {
					s.learn(q, j, q.claims[j] == 0, WeightUser)
				}
				break
			}
		}
	}
	return shown
}

// judgeShare is the cost of a judge's call against an answer of the dearest member, and
// judged the share of questions in balanced that are factual or high-stakes.
const judgeShare, judged = 0.2, 0.55

// Names of rows.
const (
	simSingle = "best single member"
	simOracle = "best member of each domain (oracle)"
	simAlone  = "fast alone"
	simTaught = "fast, after 500 turns at high"
)

type simRow struct {
	name           string
	accuracy, cost float64 // cost against the best single member
	after          float64 // expected accuracy after simLearned turns
}

// simulate answers the same questions in a way and returns the share that is right and
// the mean cost.
func simulate(seed uint64, ask func(s *simulated, seed uint64, q *question) (shown int, cost float64)) (accuracy, cost, after float64) {
	s, questions := newSimulated(seed), rand.New(rand.NewPCG(seed, 2))
	right := 0
	for i := range simQuestions {
		q := draw(questions)
		shown, c := ask(s, seed<<20+uint64(i), &q)
		if q.claims[shown] == 0 {
			right++
		}
		cost += c / simQuestions
		if i >= simLearned {
			after += simMembers[shown].accuracy[q.domain] / (simQuestions - simLearned)
		}
	}
	return float64(right) / simQuestions, cost, after
}

func runSimulation(seed uint64) []simRow {
	var single simRow
	for i, m := range simMembers {
		accuracy, _, after := simulate(seed, func(*simulated, uint64, *question) (int, float64) { return i, m.price })
		if accuracy > single.accuracy {
			single = simRow{simSingle, accuracy, m.price, after}
		}
	}
	price := single.cost
	rows := []simRow{single}
	add := func(name string, ask func(s *simulated, seed uint64, q *question) (int, float64)) {
		a, c, after := simulate(seed, ask)
		rows = append(rows, simRow{name, a, c / price, after})
	}
	rows[0].cost = 1
	add(simOracle, func(_ *simulated, _ uint64, q *question) (int, float64) {
		best := 0
		for i, m := range simMembers {
			if m.accuracy[q.domain] > simMembers[best].accuracy[q.domain] {
				best = i
			}
		}
		return best, simMembers[best].price
	})
	add(simAlone, func(s *simulated, seed uint64, q *question) (int, float64) {
		i := s.one(seed, q)
		return i, simMembers[i].price
	})
	turn := 0
	add(simTaught, func(s *simulated, seed uint64, q *question) (int, float64) {
		if turn++; turn <= simLearned {
			return s.all(seed, q), 1
		}
		i := s.one(seed, q)
		return i, simMembers[i].price
	})
	turn = 0
	add("fast, each fourth of the first 500 at high", func(s *simulated, seed uint64, q *question) (int, float64) {
		if turn++; turn <= simLearned && turn%4 == 0 {
			return s.all(seed, q), 1
		}
		i := s.one(seed, q)
		return i, simMembers[i].price
	})
	add(Balanced, func(s *simulated, seed uint64, q *question) (int, float64) {
		i := s.one(seed, q)
		if s.r.Float64() >= judged {
			return i, simMembers[i].price
		}
		s.learn(q, i, (q.claims[i] == 0) == (s.r.Float64() < simJudge), WeightReview)
		return i, simMembers[i].price + judgeShare
	})
	add(High, func(s *simulated, seed uint64, q *question) (int, float64) {
		total := 0.0
		for _, m := range simMembers {
			total += m.price * 1.2 // the answer, and a rating of the others
		}
		return s.all(seed, q), total
	})
	return rows
}

// simSeeds are the runs whose mean is compared with the thresholds.
var simSeeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

func TestSimulation(t *testing.T) {
	var mean []simRow
	for _, seed := range simSeeds {
		for i, r := range runSimulation(seed) {
			if len(mean) <= i {
				mean = append(mean, simRow{name: r.name})
			}
			n := float64(len(simSeeds))
			mean[i].accuracy, mean[i].cost, mean[i].after = mean[i].accuracy+r.accuracy/n, mean[i].cost+r.cost/n, mean[i].after+r.after/n
		}
	}
	by := map[string]simRow{}
	t.Log("| way | right | expected after 500 | cost |")
	for _, r := range mean {
		by[r.name] = r
		t.Logf("| %s | %.1f %% | %.1f %% | %.2f |", r.name, 100*r.accuracy, 100*r.after, r.cost)
	}
	single, oracle := by[simSingle], by[simOracle]
	if got := by[High].accuracy; got < single.accuracy+0.05 {
		t.Errorf("high is right in %.3f, the best single member in %.3f: want 5 points more", got, single.accuracy)
	}
	if got := by[Balanced]; got.accuracy < single.accuracy-0.01 || got.cost > 1.3*single.cost {
		t.Errorf("balanced is right in %.3f at %.2f times the cost, the best single member in %.3f", got.accuracy, got.cost, single.accuracy)
	}
	if got := by[simAlone].after; got < single.after {
		t.Errorf("routing that learns from fast alone reaches %.3f, the best single member %.3f", got, single.after)
	}
	if got := by[simTaught].after; got < oracle.after-0.03 {
		t.Errorf("routing reaches %.3f after 500 turns, the oracle %.3f: want at most 3 points less", got, oracle.after)
	}
}

// The figures are of the choice, not of chance: a second run of one seed is the same.
func TestSimulationIsRepeatable(t *testing.T) {
	a, b := runSimulation(1), runSimulation(1)
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("%+v, then %+v", a[i], b[i])
		}
	}
}
