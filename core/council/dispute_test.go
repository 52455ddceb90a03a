package council_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/store"
)

// Prose of which nothing is known without a judge.
const (
	harbour = "A bridge is a fine thing to see at night from the old harbour."
	storms  = "Engineers prefer steel where storms are frequent, says the mayor."
	fog     = "Nobody remembers the ceremony, since fog covered the whole valley."
)

// evidence returns what is known of the models, "wins/runs" each; "" is nothing.
func (b *bench) evidence() (list []string) {
	b.t.Helper()
	records, err := b.ledger.Records(b.t.Context(), b.models)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range b.models {
		text := ""
		if e := records[m].Domains[""]; e.Runs > 0 {
			text = fmt.Sprintf("%v/%v", e.Wins, e.Runs)
		}
		list = append(list, text)
	}
	return list
}

// next is the user's next turn, which does not correct the answer.
func (b *bench) next() {
	b.t.Helper()
	if err := b.db.Tx(b.t.Context(), func(tx *store.Tx) error {
		_, err := b.ledger.Settle(b.t.Context(), tx, ledger.Turn{User: 7, Conversation: "session-1", After: "run-1", Verdict: ledger.Correct})
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
}

// best rates the answers with a word best, and the others as they are.
func best(m says, word string) says {
	m.rates = rating(word)
	return m
}

func TestAContradictionIsNotHiddenByAnAnswerThatAgreesWithBothSides(t *testing.T) {
	var members []says
	for _, height := range []string{"between 300 m and 330 m", "330 m", "300 m"} {
		m := best(claim("The tower is "+height+" tall."), "between")
		m.review = `{"verdict":"partially_correct","issues":[],"correction":""}`
		members = append(members, m)
	}
	b := newBench(t, members...)
	v := b.answer(choice.High)
	if !strings.HasPrefix(v.Text, "The tower is between") || v.Council.CalloutType != choice.CalloutDisagreement || v.Council.Confidence != choice.LabelUncertain || len(v.Council.Options) != 3 {
		t.Fatalf("%q, %+v", v.Text, v.Council)
	}
	if _, err := b.ledger.Pick(t.Context(), 7, "run-1", "memberb/m"); err != nil {
		t.Fatal(err)
	}
	if got := b.evidence(); !slices.Equal(got, []string{"", "1/1", "0/1"}) {
		t.Errorf("after the pick of 330 m: %q", got)
	}
}

// Whoever wins: the judge has not replied, so nothing is known of the answers' relation.
func TestAnAnswerOfWhichNothingIsKnownIsNotFoundWrong(t *testing.T) {
	judge := claim("x")
	judge.verdict = "I cannot say."
	b := newBench(t, best(claim(harbour), "harbour"), best(claim(storms), "harbour"), judge)
	b.members.Judge, b.members.Models = b.members.Models[2], b.members.Models[:2]
	if v := b.answer(choice.High); v.Text != harbour || v.Council.CalloutType != "" || v.Council.Confidence != choice.LabelMedium {
		t.Errorf("%q, %+v", v.Text, v.Council)
	}
	b.next()
	if got := b.evidence(); !slices.Equal(got, []string{"0.3/0.3", "", ""}) {
		t.Errorf("%q", got)
	}
}

func TestTheJudgeNamesWhichAnswersContradictEachOther(t *testing.T) {
	judge := claim("x")
	judge.against = "fog"
	b := newBench(t, best(claim(harbour), "harbour"), best(claim(fog), "harbour"), best(claim(storms), "harbour"), judge)
	b.members.Judge, b.members.Models = b.members.Models[3], b.members.Models[:3]
	v := b.answer(choice.High)
	if v.Council.CalloutType != choice.CalloutDisagreement || len(v.Council.Options) != 2 || v.Council.Options[1].Text != fog {
		t.Fatalf("%q, %+v", v.Text, v.Council)
	}
	if _, err := b.ledger.Pick(t.Context(), 7, "run-1", v.Council.Options[0].Model); err != nil {
		t.Fatal(err)
	}
	if got := b.evidence(); !slices.Equal(got, []string{"1/1", "0/1", "1/1", ""}) {
		t.Errorf("after the pick of one of the two that agree: %q", got)
	}
}

// A judge that does not name who contradicts whom is asked once more, and then decides nothing.
func TestAContradictionThatNamesNoneIsNoVerdict(t *testing.T) {
	judge := claim("x")
	judge.verdict = `{"verdict":"contradict","pairs":[],"points":["all"]}`
	b := newBench(t, claim(harbour), claim(fog), claim(storms), judge)
	b.members.Judge, b.members.Models = b.members.Models[3], b.members.Models[:3]
	if v := b.answer(choice.High); v.Council.CalloutType != "" || v.Council.Confidence != choice.LabelMedium || b.asked(3, "verdict") != 2 {
		t.Errorf("%+v, the judge was asked %d times", v.Council, b.asked(3, "verdict"))
	}
}

func TestAnswersThatTheJudgeFindsComplementaryAgree(t *testing.T) {
	judge := claim("x")
	judge.verdict = `{"verdict":"complementary","pairs":[],"points":[]}`
	b := newBench(t, best(claim(harbour), "harbour"), best(claim(storms), "harbour"), judge)
	b.members.Judge, b.members.Models = b.members.Models[2], b.members.Models[:2]
	if v := b.answer(choice.High); v.Council.CalloutType != "" || v.Council.Confidence != choice.LabelHigh || len(v.Council.Options) != 0 {
		t.Errorf("%+v", v.Council)
	}
	b.next()
	if got := b.evidence(); !slices.Equal(got, []string{"0.3/0.3", "0.3/0.3", ""}) {
		t.Errorf("%q", got)
	}
}
