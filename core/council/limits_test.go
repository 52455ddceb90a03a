package council_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// begin answers a question while the test goes on.
func (b *bench) begin(level string) chan orchestrator.Verdict {
	done := make(chan orchestrator.Verdict, 1)
	go func() {
		v, err := b.council.Answer(b.t.Context(), b.sitting(level, bridge))
		if err != nil {
			b.t.Error(err)
		}
		done <- v
	}()
	return done
}

// ended returns the answer of begin.
func (b *bench) ended(done chan orchestrator.Verdict) orchestrator.Verdict {
	b.t.Helper()
	select {
	case v := <-done:
		return v
	case <-time.After(30 * time.Second):
		b.t.Fatal("the council still waits")
		return orchestrator.Verdict{}
	}
}

// A second answer a moment before the end of three times the wait still counts; with it the
// wait for the third begins.
func TestAfterTheFirstAnswerOthersAreAwaitedThreeTimesAsLong(t *testing.T) {
	hangs, slow := says{answer: llmtest.Reply{HangHead: true}}, claim("It opened in 1932.")
	slow.until = make(chan struct{})
	answers := sync.OnceFunc(func() { close(slow.until) })
	b := newBench(t, claim("It opened in 1932."), slow, hangs)
	t.Cleanup(answers) // before that of the servers, which waits for it
	done := b.begin(choice.High)
	b.clock.AwaitWaiters(1)
	b.clock.Advance(3*b.members.Wait - time.Nanosecond)
	answers()
	select {
	case <-b.clock.Waiting(2):
	case v := <-done:
		t.Fatalf("it ended without the second answer: %q", v.Text)
	}
	b.clock.Advance(b.members.Wait)
	if v := b.ended(done); len(v.Council.ModelsUsed) != 2 || !strings.Contains(v.Text, "Without memberc/m") {
		t.Errorf("%q, %v", v.Text, v.Council.ModelsUsed)
	}
}

func TestAnAnswerThatStaysTheOnlyOneIsShownAfterThreeTimesTheWait(t *testing.T) {
	hangs := says{answer: llmtest.Reply{HangHead: true}}
	b := newBench(t, claim("It opened in 1932."), hangs, hangs)
	done := b.begin(choice.High)
	b.clock.AwaitWaiters(1)
	b.clock.Advance(3 * b.members.Wait)
	if v := b.ended(done); !strings.HasPrefix(v.Text, "It opened in 1932.") || v.Council.Confidence != choice.LabelMedium || !strings.Contains(v.Text, "Without memberb/m, memberc/m") {
		t.Errorf("%q, %+v", v.Text, v.Council)
	}
}

// A tool of the first member returns so much that the others cannot read it within the limit.
func TestTheAnswerSaysThatAMemberWasLeftOutForItsCost(t *testing.T) {
	b := newBench(t, claim("It opened in 1932."), claim("It opened in 1932."))
	b.members.Most = 20_000
	s := b.sitting(choice.High, bridge)
	loop := s.Loop
	s.Loop = func(ctx context.Context, m llm.Model, l orchestrator.Loop) (orchestrator.Draft, error) {
		l.Calls()
		d, err := loop(ctx, m, l)
		d.Tools = []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: strings.Repeat("x", 100_000)}}}}
		return d, err
	}
	v := b.ask(s)
	if !strings.Contains(v.Text, texts.Text("council_cost")) || !strings.Contains(v.Text, "Without memberb/m") || v.Council.AccuracyLevel != choice.High || len(v.Council.ModelsUsed) != 1 {
		t.Errorf("%q, %+v", v.Text, v.Council)
	}
}

func TestAReplyIsNotAskedForAgainBeyondTheLimitOfAQuestion(t *testing.T) {
	for name, c := range map[string]struct{ cost, asked int }{"within": {10, 2}, "beyond": {20_000, 1}} {
		judge := claim("x")
		judge.verdict, judge.cost = "I cannot say.", &llmtest.Tokens{Prompt: c.cost} // millionths of a dollar
		b := newBench(t, claim(harbour), claim(storms), judge)
		b.members.Judge, b.members.Models, b.members.Most = b.members.Models[2], b.members.Models[:2], 20_000
		if b.answer(choice.High); b.asked(2, "verdict") != c.asked {
			t.Errorf("%s: the judge was asked %d times, want %d", name, b.asked(2, "verdict"), c.asked)
		}
	}
}

// No member contradicts another, and the question asks for no fact.
func TestAnswersToQuestionsWhereErrorsDoHarmAreReviewedAndSaySo(t *testing.T) {
	for _, level := range []string{choice.Balanced, choice.High} {
		m := claim("Ask your doctor first.")
		m.answer = llmtest.Say("Ask your doctor first.\nREPORT: {\"confidence\": 0.9, \"domain\": \"medical\"}")
		b := newBench(t, m, m, m)
		v := b.ask(b.sitting(level, "Should my patient take ibuprofen with blood pressure medicine against the pain?"))
		if n := b.asked(0, "review") + b.asked(1, "review") + b.asked(2, "review"); n != 1 {
			t.Errorf("%s: %d reviews", level, n)
		}
		if v.Council.CalloutType != choice.CalloutHighStakes || v.Council.Confidence != choice.LabelMedium || !strings.HasSuffix(v.Text, "\n\n*"+texts.Text("council_highstakes")+"*") {
			t.Errorf("%s: %q, %+v", level, v.Text, v.Council)
		}
	}
}

func TestCallsOfMembersAndReviewsAreMeasured(t *testing.T) {
	m := claim("It opened in 1932.")
	m.review, m.again = incorrect, llmtest.Say("It opened on 19 March 1932.")
	b := newBench(t, m, m, m)
	v := b.answer(choice.Maximum)
	found, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]uint64{}
	for _, f := range found {
		for _, s := range f.Metric {
			switch f.GetName() {
			case "gatehouse_council_reviews_total":
				if n := s.GetCounter().GetValue(); n != 2 {
					t.Errorf("%v reviews, want those of the other two", n)
				}
			case "gatehouse_council_member_seconds":
				model, h := s.Label[0].GetValue(), s.GetHistogram()
				calls[model] = h.GetSampleCount()
				if want := tookEach.Seconds() * float64(h.GetSampleCount()); h.GetSampleSum() != want {
					t.Errorf("calls of %s took %v s, want %v", model, h.GetSampleSum(), want)
				}
			}
		}
	}
	for _, model := range b.models { // an answer and a rating, and a review or the answer again
		if calls[model] != 3 {
			t.Errorf("%d calls of %s, the author is %s", calls[model], model, v.Model)
		}
	}
}

// A question counts once, when it ends, by the level that it was asked at.
func TestQuestionsAreCountedByLevelAndHowTheyEnded(t *testing.T) {
	refuses := says{answer: llmtest.Reply{Status: 400, Body: `{"error":{"message":"no"}}`}}
	good, bad := newBench(t, claim("It opened in 1932."), claim("It opened in 1932.")), newBench(t, refuses, refuses)
	counted := func(b *bench) map[string]float64 {
		t.Helper()
		found, err := b.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		list := map[string]float64{}
		for _, f := range found {
			for _, s := range f.Metric {
				if f.GetName() == "gatehouse_council_queries_total" {
					list[s.Label[0].GetValue()+" "+s.Label[1].GetValue()] = s.GetCounter().GetValue()
				}
			}
		}
		return list
	}
	for _, c := range []struct {
		*bench
		levels []string
		counts map[string]float64
	}{
		{good, nil, nil},
		{good, []string{choice.High, choice.High, choice.Fast}, map[string]float64{"high done": 2, "fast done": 1}},
		{bad, []string{choice.Maximum, choice.Balanced}, map[string]float64{"maximum failed": 1, "balanced failed": 1}},
	} {
		want := map[string]float64{}
		for _, level := range choice.Levels() {
			want[level+" done"], want[level+" failed"] = 0, 0
		}
		maps.Copy(want, c.counts)
		for i, level := range c.levels {
			s := c.sitting(level, bridge)
			s.Turn.Run = fmt.Sprint("run-", i)
			c.ask(s)
		}
		if got := counted(c.bench); !maps.Equal(got, want) {
			t.Errorf("after %q %v are counted, want %v", c.levels, got, want)
		}
	}
}

// The domain that a member named is counted in the attempt that asked it.
func TestALaterAttemptCountsNoNameOfADomainAgain(t *testing.T) {
	m := claim("It opened in 1932.")
	m.answer = llmtest.Say("It opened in 1932.\nREPORT: {\"confidence\": 0.9, \"domain\": \"knots\"}")
	m.rates, m.replies = nil, llmtest.Say("no rating")
	b := newBench(t, m, m, m)
	b.interrupted(choice.Maximum, 0, 2, "choice membera/m")
	b.answer(choice.Maximum)
	if n := b.count(`SELECT query_count FROM domain_candidates WHERE raw_string = 'knots'`); n != 3 {
		t.Errorf("three members' name is counted %d times", n)
	}
}

// What answered for a member is stored as the member's answer: a later attempt looks for that.
func TestALaterAttemptKeepsTheAnswerOfAMembersFallback(t *testing.T) {
	m := claim("It opened in 1932.")
	b := newBench(t, m, m, m)
	s := b.sitting(choice.Fast, bridge)
	loop := s.Loop
	s.Loop = func(ctx context.Context, m llm.Model, l orchestrator.Loop) (orchestrator.Draft, error) {
		d, err := loop(ctx, m, l)
		d.Model = "fallback/m"
		return d, err
	}
	for range 2 { // the first attempt ends before its end is stored
		v, err := b.council.Answer(t.Context(), s)
		if err != nil || v.Model != "membera/m" {
			t.Errorf("%s, %v", v.Model, err)
		}
	}
	if b.loops != 1 {
		t.Errorf("%d loops ran", b.loops)
	}
}

// Of bridges another member knows more than of history as a whole.
func TestTheDomainBelowThatAQuestionNamesDecidesWhoIsAsked(t *testing.T) {
	m := claim("It opened in 1932.")
	b := newBench(t, m, m)
	if err := b.db.Tx(t.Context(), func(tx *store.Tx) error {
		for _, q := range []string{
			`INSERT INTO domain_nodes (node_id, parent_id, depth, display_name, query_count, is_l0_root, last_seen) VALUES ('history', NULL, 0, 'History', 0, 1, '')`,
			`INSERT INTO domain_nodes (node_id, parent_id, depth, display_name, query_count, is_l0_root, last_seen) VALUES ('history.bridge', 'history', 1, 'bridge', 0, 0, '')`,
			`INSERT INTO model_domains (model_id, domain, wins, runs) VALUES ('membera/m', 'history', 90000000, 90000000), ('membera/m', 'history.bridge', 0, 90000000), ('memberb/m', 'history', 45000000, 90000000), ('memberb/m', 'history.bridge', 90000000, 90000000)`,
		} {
			if _, err := tx.Exec(t.Context(), q); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, question := range []string{"When in history was the bridge opened?", "When in history was the castle built?"} {
		s := b.sitting(choice.Fast, question)
		s.Turn.Run = question
		asked = append(asked, b.ask(s).Model)
	}
	if !slices.Equal(asked, []string{"memberb/m", "membera/m"}) {
		t.Errorf("%v were asked", asked)
	}
}
