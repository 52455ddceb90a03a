package domains

// Constants of the reliability score.
const (
	StartScore  = 70
	MaxScore    = 100
	NeedCorrect = 3 // correct answers that raise it by one
	NeedWrong   = 2 // wrong ones that lower it by one
)

// A Reliability is a model's score from 0 to 100 with its counters.
type Reliability struct {
	Score   int `json:"score"`
	Correct int `json:"correct"` // since the score was last raised
	Wrong   int `json:"wrong"`   // since it was last lowered
}

// Without returns the reliability without one correct or wrong answer, as far as its counter
// has it: a score that was raised or lowered with it stays.
func (r Reliability) Without(correct bool) Reliability {
	if correct {
		r.Correct = max(0, r.Correct-1)
	} else {
		r.Wrong = max(0, r.Wrong-1)
	}
	return r
}

// Apply returns the reliability after an answer that was found correct or wrong, and
// whether a counter crossed its threshold: then the score changed, unless it is at
// its end, and the counter is zero.
func (r Reliability) Apply(correct bool) (next Reliability, crossed bool) {
	if correct {
		if r.Correct++; r.Correct < NeedCorrect {
			return r, false
		}
		return Reliability{min(r.Score+1, MaxScore), 0, r.Wrong}, true
	}
	if r.Wrong++; r.Wrong < NeedWrong {
		return r, false
	}
	return Reliability{max(r.Score-1, 0), r.Correct, 0}, true
}
