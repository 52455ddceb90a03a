package scripted

import (
	"testing"

	"gatehouse/core/council/choice"
	"gatehouse/core/council/claims"
)

func TestTheModelsDisagreeOnOneQuestionAndAgreeOnTheOther(t *testing.T) {
	t.Parallel()
	all := []string{"birch", "maple", "oak"}
	for i, disagrees := range []string{"oak", ""} {
		q := questions()[i]
		for a := range all {
			for b := range a {
				want := choice.Agree
				if all[a] == disagrees || all[b] == disagrees {
					want = choice.Contradict
				}
				set := claims.New(q.text, []string{q.says[all[a]].text, q.says[all[b]].text})
				if got := set.Compare(0, 1); got.Relation != want {
					t.Errorf("%s: %s and %s: %+v, want %v", q.text, all[a], all[b], got, want)
				}
			}
		}
	}
}

func TestWhatTheModelsReturnIsReadByTheCouncil(t *testing.T) {
	t.Parallel()
	disputed := questions()[0]
	text := "<question-00c0ffee>\n" + disputed.text + "\n</question-00c0ffee>\n<answer-A-00c0ffee>\n" + disputed.says["birch"].text + "\n</answer-A-00c0ffee>\n<answer-B-00c0ffee>\n" + disputed.says["oak"].text + "\n</answer-B-00c0ffee>\n"
	maple := models()[1]
	reply, err := maple.judge("ratings", text)
	if ratings, bad := choice.ParseRatings(reply, 2); err != nil || bad != nil || ratings["A"] <= ratings["B"] {
		t.Errorf("%q %v %v", reply, err, bad)
	}
	reply, err = maple.judge("verdict", text)
	if v, bad := choice.ParseVerdict(reply, 2); err != nil || bad != nil || len(v.Pairs) != 1 || v.Pairs[0] != [2]int{0, 1} || len(v.Points) != 1 {
		t.Errorf("%q %v %v", reply, err, bad)
	}
	text = "<question-00c0ffee>\n" + disputed.text + "\n</question-00c0ffee>\n<answer-00c0ffee>\n" + disputed.says["oak"].text + "\n</answer-00c0ffee>\n"
	reply, err = maple.judge("review", text)
	if v, bad := choice.ParseReview(reply); err != nil || bad != nil || v.Verdict != choice.ReviewIncorrect {
		t.Errorf("%q %v %v", reply, err, bad)
	}
	for _, question := range append(Questions(), "How are you?") {
		if answer, report, ok := choice.SplitReport(maple.answerTo(question)); answer == "" || !ok || report.Domain == "" {
			t.Errorf("%s: %q %+v", question, answer, report)
		}
	}
}
