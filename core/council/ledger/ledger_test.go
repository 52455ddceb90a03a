package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/domains"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

type world struct {
	*testing.T
	*Store
	db    *store.DB
	clock *coretest.Clock
	last  string // question that ended
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := coretest.NewClock(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	return newWorldAt(t, storetest.Open(t, clock), clock)
}

func newWorldAt(t *testing.T, db *store.DB, clock *coretest.Clock) *world {
	t.Helper()
	box, err := sealed.Create(filepath.Join(t.TempDir(), "keys", "content"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, db: db, clock: clock}
	w.Store = New(Options{DB: db, Clock: clock, Seal: box})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func answer(model, text string, claim int) Run {
	return Run{Model: model, Round: RoundAnswer, Response: text, Utility: 0.4, Confidence: 0.8, Welfare: 0.5, State: "ok", Claim: claim, Domain: "code", Detail: Detail{LatencyMS: 100}}
}

func (w *world) finish(r Result) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), func(tx *store.Tx) error { return w.Finish(w.Context(), tx, r) }))
}

// ask stores a finished query of user 7; the winner is that of the result.
func (w *world) ask(id string, r Result, runs ...Run) {
	w.Helper()
	_, _, err := w.Begin(w.Context(), Query{ID: id, User: 7, Conversation: "s1", Level: choice.High, Asked: choice.High, Question: "How tall is " + id + "?", Domains: []choice.Share{{Domain: "code", Weight: 1}}, Seed: math.MaxUint64})
	w.must(err)
	for _, run := range runs {
		w.must(w.Save(w.Context(), Stage{Query: id, Stage: StageAnswer, Model: run.Model, Content: run.Response + "\nREPORT: {\"confidence\":0.8,\"domain\":\"code\"}"}))
		r.Used = append(r.Used, run.Model)
	}
	r.Query, r.Runs, r.Domains = id, runs, []choice.Share{{Domain: "code", Weight: 1}}
	w.finish(r)
	w.last = id
	w.clock.Advance(time.Second)
}

func (w *world) dispute(id string) {
	w.Helper()
	a := answer("a", "It is 1.", 1)
	a.Winner = true
	w.ask(id, Result{Winner: "a", Callout: choice.CalloutDisagreement, Confidence: choice.LabelUncertain, Note: Note{Contradict: [][2]string{{"a", "b"}, {"a", "c"}}}}, a, answer("b", "It is 2.", 2), answer("c", "It is 2, too.", 2))
}

func (w *world) winners(query string) (models []string) {
	w.Helper()
	v, err := w.Query(w.Context(), 7, query)
	w.must(err)
	for _, r := range v.Runs {
		if r.Winner {
			models = append(models, r.Model)
		}
	}
	return models
}

// The one who picks is shown what the chat showed.
func TestARevisedAnswerIsAnOptionInPlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("q1")
	w.must(w.Save(t.Context(), Stage{Query: "q1", Stage: StageRegenerate, Model: "a", Content: "It is 1, as the reviewers say."}))
	options, err := w.Options(t.Context(), 7, "q1")
	w.must(err)
	if len(options) != 3 || options[0] != (Option{"a", "It is 1, as the reviewers say."}) || options[1].Text != "It is 2." {
		t.Errorf("%+v", options)
	}
}

func TestADisputeHasNoWinnerUntilThePickThatMakesExactlyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("q1")
	if got := w.winners("q1"); len(got) != 0 {
		t.Fatalf("before the pick: %v", got)
	}
	options, err := w.Options(t.Context(), 7, "q1")
	w.must(err)
	if len(options) != 3 || options[0] != (Option{"a", "It is 1."}) {
		t.Fatalf("%+v", options)
	}
	p, err := w.Pick(t.Context(), 7, "q1", "b")
	w.must(err)
	if !slices.Equal(p.Same, []string{"b", "c"}) || !strings.HasPrefix(p.Preview, "How tall is q1") {
		t.Errorf("%v say the same: %+v", p.Same, p)
	}
	if got := w.winners("q1"); len(got) != 1 || got[0] != "b" {
		t.Errorf("after the pick: %v", got)
	}
	records, err := w.Records(t.Context(), []string{"a", "b", "c"})
	w.must(err)
	for model, want := range map[string]choice.Evidence{"a": {Wins: 0, Runs: 1}, "b": {Wins: 1, Runs: 1}, "c": {Wins: 1, Runs: 1}} {
		if got := records[model].Domains["code"]; got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
}

func TestThePickOfOneQueryIsIdempotentAndASecondOneIsToldTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("q1")
	for range 3 {
		_, err := w.Pick(t.Context(), 7, "q1", "b")
		w.must(err)
	}
	records, err := w.Records(t.Context(), []string{"b"})
	w.must(err)
	if got := records["b"].Domains["code"]; got.Runs != 1 {
		t.Errorf("the pick is counted %v times", got.Runs)
	}
	_, err = w.Pick(t.Context(), 7, "q1", "a")
	var refused *PickError
	if !errors.As(err, &refused) || refused.Reason != Taken || refused.Picked != "b" || core.KindOf(err) != core.Conflict {
		t.Errorf("%v", err)
	}
	if got := w.winners("q1"); len(got) != 1 || got[0] != "b" {
		t.Errorf("%v", got)
	}
}

func TestPicksAreTheAskersOwnOfTheOptionsOfADisputeWithin24Hours(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("q1")
	w.ask("q2", Result{Winner: "a"}, answer("a", "yes", 1))
	for name, c := range map[string]struct {
		user         int64
		query, model string
		want         core.Kind
	}{
		"another user":       {8, "q1", "a", core.NotFound},
		"an unknown query":   {7, "q9", "a", core.NotFound},
		"a model without":    {7, "q1", "d", core.Invalid},
		"an undisputed":      {7, "q2", "a", core.Conflict},
		"another's, unknown": {8, "q1", "nobody", core.NotFound},
	} {
		if _, err := w.Pick(t.Context(), c.user, c.query, c.model); core.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.clock.Advance(PickOpen)
	_, err := w.Pick(t.Context(), 7, "q1", "a")
	var refused *PickError
	if !errors.As(err, &refused) || refused.Reason != TooLate {
		t.Errorf("after 24 hours: %v", err)
	}
	if v, err := w.Query(t.Context(), 7, "q1"); err != nil || v.PickUntil != nil {
		t.Errorf("%+v, %v", v.PickUntil, err)
	}
}

func TestOfTwoPicksAtOneMomentOneWinsAndTheOtherIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		id := fmt.Sprintf("q%d", i)
		w.dispute(id)
		errs := make([]error, 2)
		var all sync.WaitGroup
		for n, model := range []string{"a", "b"} {
			all.Go(func() { _, errs[n] = w.Pick(t.Context(), 7, id, model) })
		}
		all.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("%v, %v", errs[0], errs[1])
		}
		if got := w.winners(id); len(got) != 1 {
			t.Fatalf("%v", got)
		}
	}
}

func TestAnAttemptAfterACrashFindsTheAnswersThatAreStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := Query{ID: "q1", User: 7, Conversation: "s1", Level: choice.High, Asked: choice.Maximum, Question: "?", Seed: 1<<63 + 5}
	if _, resumed, err := w.Begin(t.Context(), q); err != nil || resumed {
		t.Fatal(resumed, err)
	}
	w.must(w.Save(t.Context(), Stage{Query: "q1", Stage: StageAnswer, Model: "a", Content: "forty-two", Detail: Detail{OutputTokens: 3}}))
	w.must(w.Save(t.Context(), Stage{Query: "q1", Stage: StageAnswer, Model: "b", Error: "no answer after 20 s"}))
	w.must(w.Save(t.Context(), Stage{Query: "q1", Stage: StageAnswer, Model: "a", Content: "another one"}))
	again := q
	again.Level, again.Seed = choice.Fast, 9
	stored, resumed, err := w.Begin(t.Context(), again)
	if err != nil || !resumed || stored.Level != choice.High || stored.Seed != q.Seed {
		t.Errorf("%+v, %v, %v", stored, resumed, err)
	}
	stages, err := w.Stages(t.Context(), "q1")
	if err != nil || len(stages) != 2 || stages[0].Content != "forty-two" || stages[0].Detail.OutputTokens != 3 || stages[1].Error == "" {
		t.Errorf("%+v, %v", stages, err)
	}
	other := q
	other.User = 8
	if _, _, err := w.Begin(t.Context(), other); core.KindOf(err) != core.Conflict {
		t.Errorf("another user's: %v", err)
	}
}

func TestAQueryEndsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("q1", Result{Winner: "a", Confidence: choice.LabelHigh, Note: Note{Text: "two agree"}}, answer("a", "yes", 1))
	w.finish(Result{Query: "q1", Winner: "b", Runs: []Run{answer("b", "no", 2)}})
	v, err := w.Query(t.Context(), 7, "q1")
	if err != nil || v.Winner != "a" || len(v.Runs) != 1 || v.Note == nil || v.Note.Text != "two agree" || v.Confidence != choice.LabelHigh {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := w.Query(t.Context(), 8, "q1"); core.KindOf(err) != core.NotFound {
		t.Errorf("another user reads it: %v", err)
	}
}

// settle is what a user's next turn does.
func (w *world) settle(corrected bool) (b Blame) {
	w.Helper()
	verdict := Correct
	if corrected {
		verdict = Incorrect
	}
	return w.turn(Turn{User: 7, Conversation: "s1", After: w.last, Verdict: verdict})
}

func (w *world) turn(t Turn) (b Blame) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), func(tx *store.Tx) (err error) {
		b, err = w.Settle(w.Context(), tx, t)
		return err
	}))
	return b
}

// In a group the answer before a turn may be to another member, in any conversation one of a
// model alone: then no earlier answer is judged, now or later.
func TestATurnJudgesTheAnswerThatItFollowsAndNoEarlierOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("q1", Result{Winner: "a"}, answer("a", "yes", 0))
	w.ask("q2", Result{Winner: "b"}, answer("b", "no", 0))
	for name, turn := range map[string]Turn{
		"after a model's answer":  {User: 7, Conversation: "s1", After: "run-3", Verdict: Incorrect},
		"after what is not known": {User: 7, Conversation: "s1", Verdict: Incorrect},
		"of another member":       {User: 8, Conversation: "s1", After: "q1", Verdict: Incorrect},
		"in another conversation": {User: 7, Conversation: "s2", After: "q1", Verdict: Incorrect},
	} {
		if b := w.turn(turn); b != (Blame{}) {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if b := w.turn(Turn{User: 7, Conversation: "s1", After: "q1", Verdict: Incorrect}); b.Query != "q1" || b.Model != "a" {
		t.Errorf("%+v", b)
	}
}

// A turn that says neither ends the time in which the answer can be judged.
func TestOnlyTheNextTurnJudges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("q1", Result{Winner: "a"}, answer("a", "yes", 0))
	for _, verdict := range []string{"", Incorrect} {
		if b := w.turn(Turn{User: 7, Conversation: "s1", After: "q1", Verdict: verdict}); b != (Blame{}) {
			t.Errorf("%q: %+v", verdict, b)
		}
	}
}

func TestTheNextTurnSaysOnceWhetherTheAnswerWasRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if b := w.settle(true); b != (Blame{}) {
		t.Errorf("without an answer: %+v", b)
	}
	w.ask("q1", Result{Winner: "a"}, answer("a", "yes", 1), answer("b", "yes", 1), answer("c", "no", 2))
	w.settle(true)
	if b := w.settle(true); b != (Blame{}) {
		t.Errorf("a second time: %+v", b)
	}
	w.ask("q2", Result{Winner: "a"}, answer("a", "yes", 1))
	if b := w.settle(true); b != (Blame{"q2", "a", -1}) {
		t.Errorf("the second wrong answer: %+v", b)
	}
	w.ask("q3", Result{Winner: "c"}, answer("c", "yes", 0))
	w.settle(false)
	records, err := w.Records(t.Context(), []string{"a", "b", "c"})
	w.must(err)
	for model, want := range map[string]choice.Evidence{"a": {Wins: 0, Runs: 2}, "b": {Wins: 0, Runs: 1}, "c": {Wins: 0.3, Runs: 0.3}} {
		if got := records[model].Domains[""]; got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
}

func TestAStrongerVerdictReplacesAWeakerOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := answer("a", "yes", 1)
	a.Verdict = Correct
	w.ask("q1", Result{Winner: "a"}, a)
	if r, _ := w.Records(t.Context(), []string{"a"}); r["a"].Domains["code"] != (choice.Evidence{Wins: 0.7, Runs: 0.7}) {
		t.Errorf("after the review: %+v", r["a"].Domains)
	}
	w.settle(true)
	if r, _ := w.Records(t.Context(), []string{"a"}); r["a"].Domains["code"] != (choice.Evidence{Wins: 0, Runs: 1}) {
		t.Errorf("after the correction: %+v", r["a"].Domains)
	}
	v, err := w.Query(t.Context(), 7, "q1")
	if err != nil || v.Runs[0].Verdict != Incorrect || v.Runs[0].VerdictBy != ByCorrection {
		t.Errorf("%+v, %v", v.Runs, err)
	}
}

// One answer is not counted as correct and as wrong: a counter that has moved a score stays.
func TestAVerdictThatIsReplacedIsNotCountedOnBothSides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"q1", "q2"} {
		a := answer("a", "yes", 1)
		a.Verdict = Correct
		w.ask(id, Result{Winner: "a"}, a)
		w.settle(id == "q1")
	}
	models, err := w.Models(t.Context())
	if err != nil || models[0].Correct != 1 || models[0].Wrong != 1 {
		t.Errorf("%+v, %v", models, err)
	}
}

func TestAScoreChangesAndIsLoggedOnlyWhenACounterCrosses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 7 {
		w.ask(fmt.Sprintf("q%d", i), Result{Winner: "a"}, answer("a", "yes", 1))
		w.settle(i == 5 || i == 6)
	}
	changes, err := w.Reliability(t.Context(), "a", time.Time{})
	w.must(err)
	if len(changes) != 2 || changes[0].After != domains.StartScore+1 || changes[1].After != domains.StartScore || changes[1].Verdict != Incorrect || !changes[1].Correction {
		t.Errorf("%+v", changes)
	}
	models, err := w.Models(t.Context())
	if err != nil || len(models) != 1 || models[0].Score != domains.StartScore || models[0].Correct != 2 || models[0].Latency != 100 {
		t.Errorf("%+v, %v", models, err)
	}
}

func TestTextsOfUsersAndModelsAreNotInTheDatabasesFile(t *testing.T) {
	t.Parallel()
	storetest.SQLiteOnly(t, "it reads the file")
	clock := coretest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	path := filepath.Join(t.TempDir(), "test.db")
	w := newWorldAt(t, storetest.OpenAt(t, path, clock), clock)
	for i := range 3 {
		w.ask(fmt.Sprintf("marker%d", i), Result{Winner: "a", Note: Note{Text: "a zanzibarnote"}}, answer("a", "the zanzibaranswer", 1))
		w.settle(false)
	}
	w.must(w.db.Close())
	files, err := filepath.Glob(path + "*")
	w.must(err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		w.must(err)
		for _, word := range []string{"zanzibar", "How tall"} {
			if bytes.Contains(b, []byte(word)) {
				t.Errorf("%s has %q", filepath.Base(f), word)
			}
		}
	}
}

func TestForgettingAUserLeavesNoRowOfTheirs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 4 {
		w.dispute(fmt.Sprintf("q%d", i))
		_, err := w.Pick(t.Context(), 7, fmt.Sprintf("q%d", i), "b")
		w.must(err)
	}
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error { return w.Merge(t.Context(), tx, 7, 9) }))
	if page, _, err := w.Queries(t.Context(), Filter{User: 9}); err != nil || len(page) != 4 {
		t.Fatalf("after a merge: %d, %v", len(page), err)
	}
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		return w.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 9}})
	}))
	for _, table := range []string{"council_queries", "council_stages", "model_runs", "audit_log"} {
		var n int
		w.must(w.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table))
		if n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
	for _, x := range w.Exports() {
		if _, err := store.Rows(t.Context(), w.db, x.Query, int64(7), 10); err != nil {
			t.Errorf("%s: %v", x.Name, err)
		}
	}
}

func (w *world) rows(query string, args ...any) (n int) {
	w.Helper()
	w.must(w.db.Get(w.Context(), &n, query, args...))
	return n
}

// scored has models get scores, so that the log has questions.
func (w *world) scored(ids ...string) {
	w.Helper()
	for _, id := range ids {
		w.dispute(id)
		_, err := w.Pick(w.Context(), 7, id, "b")
		w.must(err)
	}
}

func TestASessionThatIsDeletedTakesItsQueriesWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scored("q1", "q2", "q3")
	tables := []string{"council_queries", "council_stages", "model_runs", "audit_log"}
	for _, table := range tables {
		if w.rows(`SELECT count(*) FROM `+table) == 0 {
			t.Fatalf("%s is empty before", table)
		}
	}
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error { return w.ForgetSession(t.Context(), tx, "s1") }))
	if _, err := w.Query(t.Context(), 7, "q1"); core.KindOf(err) != core.NotFound {
		t.Error(err)
	}
	for _, table := range tables {
		if n := w.rows(`SELECT count(*) FROM ` + table); n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
}

// A row of the log counts on, without the question.
func TestTheLogOfScoresHasNoQuestionThatIsNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scored("q1", "q2", "q3")
	const named = `SELECT count(*) FROM audit_log WHERE query_preview <> ''`
	all := w.rows(named)
	_, err := w.prune(t.Context())
	w.must(err)
	if n := w.rows(named); all == 0 || n != all {
		t.Fatalf("%d of %d questions are left while they are there", n, all)
	}
	w.clock.Advance(MaxAge + time.Hour)
	_, err = w.prune(t.Context())
	w.must(err)
	if n, rows := w.rows(named), w.rows(`SELECT count(*) FROM audit_log`); n != 0 || rows != all {
		t.Errorf("%d questions are left in %d rows", n, rows)
	}
}

// A name is a model's text about a question.
func TestTheNameOfADomainIsForgottenWithTheLastQuestionThatItWasUsedFor(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(w *world, tx *store.Tx) error{
		"a user": func(w *world, tx *store.Tx) error {
			return w.Forget(w.Context(), tx, &core.Removal{Person: core.Person{User: 7}})
		},
		"a conversation": func(w *world, tx *store.Tx) error { return w.ForgetSession(w.Context(), tx, "s1") },
	} {
		w := newWorld(t)
		for _, q := range []struct {
			id, domain, session string
			user                int64
		}{{"q1", "maria.divorce", "s1", 7}, {"q2", "knots", "s1", 7}, {"q3", "knots", "s2", 8}} {
			_, err := w.ResolveDomain(t.Context(), "a", q.domain, false, nil)
			w.must(err)
			_, _, err = w.Begin(t.Context(), Query{ID: q.id, User: q.user, Conversation: q.session, Level: choice.Fast, Asked: choice.Fast, Question: "?"})
			w.must(err)
			a := answer("a", "yes", 0)
			a.Detail.Domain = q.domain
			w.finish(Result{Query: q.id, Winner: "a", Runs: []Run{a}, Used: []string{"a"}})
		}
		_, err := w.ResolveDomain(t.Context(), "a", "maria.custody", false, nil) // for a question that was stopped
		w.must(err)
		w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error { return forget(w, tx) }))
		all, err := w.Candidates(t.Context(), 10)
		if err != nil || len(all) != 1 || all[0].Raw != "knots" {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

func TestTheNameOfADomainThatNoStoredQuestionHasIsDeletedAfterTwoDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, domain := range []string{"knots", "maria.custody"} { // the second is of a question that was stopped, or that was one too many
		_, err := w.ResolveDomain(t.Context(), "a", domain, false, nil)
		w.must(err)
	}
	a := answer("a", "yes", 0)
	a.Detail.Domain = "knots"
	w.ask("q1", Result{Winner: "a"}, a)
	for _, want := range []int{2, 1} {
		_, err := w.prune(t.Context())
		w.must(err)
		all, err := w.Candidates(t.Context(), 10)
		if err != nil || len(all) != want || !slices.ContainsFunc(all, func(c domains.Candidate) bool { return c.Raw == "knots" }) {
			t.Errorf("%+v, %v: want %d", all, err, want)
		}
		w.clock.Advance(2*PickOpen + time.Hour)
	}
}

func TestAnswersAreKeptForTwoDaysAndQueriesForNinety(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("old")
	w.clock.Advance(MaxAge - 40*time.Hour)
	w.dispute("new")
	_, err := w.prune(t.Context())
	w.must(err)
	if o, err := w.Options(t.Context(), 7, "old"); err != nil || len(o) != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if v, err := w.Query(t.Context(), 7, "old"); err != nil || len(v.Runs) != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	w.clock.Advance(40 * time.Hour)
	n, err := w.prune(t.Context())
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	if _, err := w.Query(t.Context(), 7, "old"); core.KindOf(err) != core.NotFound {
		t.Error(err)
	}
	if o, err := w.Options(t.Context(), 7, "new"); err != nil || len(o) != 3 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestQueriesPageThroughEveryOneOnceNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 7 {
		w.ask(fmt.Sprintf("q%d", i), Result{Winner: "a"}, answer("a", "yes", 1))
	}
	var got []string
	f := Filter{User: 7, Limit: 3}
	for {
		page, next, err := w.Queries(t.Context(), f)
		w.must(err)
		for _, v := range page {
			got = append(got, v.ID)
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	if want := "q6 q5 q4 q3 q2 q1 q0"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
	if _, _, err := w.Queries(t.Context(), Filter{Cursor: "x"}); core.KindOf(err) != core.Invalid {
		t.Error(err)
	}
	if page, _, err := w.Queries(t.Context(), Filter{User: 8}); err != nil || len(page) != 0 {
		t.Error(page, err)
	}
}

func TestTheFiguresCompareTheCostWithThatOfOneModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cost := func(n int64) *int64 { return &n }
	a, b := answer("a", "yes", 1), answer("b", "yes", 1)
	a.Detail.MicroUSD, b.Detail.MicroUSD = cost(100), cost(300)
	w.ask("q1", Result{Winner: "a", Calls: 2, MicroUSD: cost(400), Confidence: choice.LabelHigh}, a, b)
	w.dispute("q2")
	got, err := w.Analyze(t.Context(), time.Time{})
	w.must(err)
	if len(got.Levels) != 1 || got.Levels[0].Queries != 2 || got.Levels[0].Disputes != 1 || got.Levels[0].Agreed != 1 || got.Levels[0].Ratio == nil || *got.Levels[0].Ratio != 4 {
		t.Errorf("%+v", got)
	}
	if len(got.Domains) != 1 || got.Domains[0] != (Asked{"code", 2, 1}) {
		t.Errorf("%+v", got.Domains)
	}
}

func TestANameWithEvidenceBecomesADomainAndRetiresIntoItsParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 40 {
		a := answer("a", "yes", 1)
		a.Verdict, a.Detail.Domain = Correct, "code.rust"
		if i%2 == 0 {
			a.Verdict, a.Detail.Domain = Incorrect, "code"
		}
		w.ask(fmt.Sprintf("q%d", i), Result{Winner: "a"}, a)
	}
	for i := range MinSightingsOf {
		r, err := w.ResolveDomain(t.Context(), []string{"a", "b"}[i%2], "code.rust", false, nil)
		if err != nil || r.Domain != "code" || !r.Candidate {
			t.Fatal(r, err)
		}
	}
	n, err := w.Review(t.Context())
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if r, err := w.ResolveDomain(t.Context(), "a", "rust", false, nil); err != nil || r.Domain != "code.rust" || r.Candidate {
		t.Errorf("%+v, %v", r, err)
	}
	records, err := w.Records(t.Context(), []string{"a"})
	w.must(err)
	if e := records["a"].Domains["code.rust"]; e.Runs != 14 || e.Wins != 14 { // 20 reviews, which count 0.7 each, as in the parent
		t.Errorf("%+v", records["a"].Domains)
	}
	w.clock.Advance(domains.Retire + time.Hour)
	if n, err := w.Review(t.Context()); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if r, err := w.ResolveDomain(t.Context(), "a", "code.rust", false, nil); err != nil || r.Domain != "code" || r.Candidate {
		t.Errorf("after its retirement: %+v, %v", r, err)
	}
}

func TestDomainsArePromotedEachHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := slices.IndexFunc(w.Chores(), func(c core.Chore) bool { return c.Name == "council_domains" })
	if i < 0 || w.Chores()[i].Every != time.Hour {
		t.Errorf("%+v", w.Chores())
	}
}

// Names that are frequent but never eligible, such as those of one model alone, keep no other from
// being promoted.
func TestACandidateBeyondTheHundredMostFrequentIsPromoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		for i := range 150 {
			_, err = tx.Exec(t.Context(), `INSERT INTO domain_candidates (raw_string, nearest_node, similarity, query_count, model_sources, first_seen, last_seen)
				VALUES ($1, 'code', 600000, 100, '["a"]', $2, $2)`, fmt.Sprintf("code.name%d", i), core.Stamp(tx.Time()))
			if err != nil {
				break
			}
		}
		return err
	}))
	for i := range 60 { // of rust all answers are right, of zig half, of others none
		a := answer("a", "yes", 1)
		a.Verdict, a.Detail.Domain = Incorrect, []string{"code.rust", "code.zig", "code"}[i%3]
		if i%3 == 0 || i%6 == 1 {
			a.Verdict = Correct
		}
		w.ask(fmt.Sprintf("q%d", i), Result{Winner: "a"}, a)
	}
	for i := range MinSightingsOf {
		for _, name := range []string{"code.rust", "code.zig"} {
			_, err := w.ResolveDomain(t.Context(), []string{"a", "b"}[i%2], name, false, nil)
			w.must(err)
		}
	}
	if n, err := w.Review(t.Context()); err != nil || n != 2 { // zig is better than the rest once rust is not in that
		t.Fatal(n, err)
	}
	tree, err := w.Tree(t.Context())
	w.must(err)
	if got := tree.Children("code"); !slices.Equal(got, []string{"code.rust", "code.zig"}) {
		t.Errorf("promoted are %v", got)
	}
}

// Of each question the likeliest domain and those that members named count once, an unknown one
// not at all.
func TestAQuestionCountsOnceInEachOfItsDomains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(seen(t.Context(), tx, domains.Node{ID: "code"}, 0), seen(t.Context(), tx, domains.Node{ID: "code.rust"}, 0))
	}))
	of := func(model, domain string) Run {
		a := answer(model, "yes", 1)
		a.Domain = domain
		return a
	}
	review := of("c", "legal")
	review.Round = RoundReview
	w.ask("q1", Result{Winner: "a"}, of("a", "code.rust"), of("b", "code.rust"), of("c", "science"), of("d", "code.gone"), review)
	w.finish(Result{Query: "q1"}) // a second end of the same
	o, err := w.Ontology(t.Context())
	w.must(err)
	want := map[string]int{"code": 1, "code.rust": 1, "science": 1}
	for _, d := range o.Domains {
		if d.Queries != want[d.ID] || d.LastSeen.IsZero() != (want[d.ID] == 0) {
			t.Errorf("%s has %d questions, the last %v", d.ID, d.Queries, d.LastSeen)
		}
		if d.ID == "code.gone" {
			t.Error("a domain that is no more is there again")
		}
	}
}

func TestADomainThatAnotherGatewayHasPromotedIsKnownAfterAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	named := func() string {
		r, err := w.ResolveDomain(t.Context(), "a", "code.rust", true, nil)
		w.must(err)
		return r.Domain
	}
	before := named()
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(seen(t.Context(), tx, domains.Node{ID: "code"}, 0), seen(t.Context(), tx, domains.Node{ID: "code.rust"}, 0))
	}))
	w.clock.Advance(time.Minute)
	if after := named(); before != "code" || after != "code.rust" {
		t.Errorf("%s before, %s after", before, after)
	}
}

func TestADomainThatIsUsedDoesNotRetire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(seen(t.Context(), tx, domains.Node{ID: "code"}, 0), seen(t.Context(), tx, domains.Node{ID: "code.rust"}, 0), seen(t.Context(), tx, domains.Node{ID: "code.zig"}, 0))
	}))
	for i := range 4 {
		w.clock.Advance(domains.Retire / 2)
		a := answer("a", "yes", 1)
		a.Domain = "code.rust"
		w.ask(fmt.Sprint("q", i), Result{Winner: "a"}, a)
		_, err := w.Review(t.Context())
		w.must(err)
	}
	tree, err := w.Tree(t.Context())
	w.must(err)
	if got := tree.Children("code"); !slices.Equal(got, []string{"code.rust"}) {
		t.Errorf("left are %v", got)
	}
}

// A server that does not answer for a while takes a name away from no node.
func TestASightingByWordsKeepsThePlacementByMeaning(t *testing.T) {
	w := newWorld(t)
	near := func(label string, s float64) func(string, []string) []float64 {
		return func(_ string, labels []string) []float64 {
			out := make([]float64, len(labels))
			for i, l := range labels {
				if l == label {
					out[i] = s
				}
			}
			return out
		}
	}
	for i, c := range []struct {
		near    func(string, []string) []float64
		nearest string
		is      float64
	}{{near("math", .5), "math", .5}, {nil, "math", .5}, {near("science", .4), "math", .5}, {near("science", .6), "science", .6}, {nil, "science", .6}} {
		r, err := w.ResolveDomain(t.Context(), "a", "angles", false, c.near)
		if err != nil || r.Nearest != c.nearest || r.Similarity != c.is || !r.Candidate {
			t.Errorf("sighting %d: %+v, %v", i, r, err)
		}
		all, err := w.Candidates(t.Context(), 10)
		if err != nil || len(all) != 1 || all[0].Nearest != c.nearest || all[0].Similarity != c.is || all[0].Count != i+1 {
			t.Errorf("after sighting %d: %+v, %v", i, all, err)
		}
	}
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE domain_candidates SET nearest_node = 'science.gone'`)
		return err
	}))
	if r, err := w.ResolveDomain(t.Context(), "a", "angles", false, nil); err != nil || r.Nearest != domains.General {
		t.Errorf("of a node that is gone: %+v, %v", r, err)
	}
}

func TestACandidateIsPromotedWhereItsMeaningPutItsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	near := func(_ string, labels []string) []float64 {
		out := make([]float64, len(labels))
		if i := slices.Index(labels, "mathematics"); i >= 0 {
			out[i] = .7
		}
		return out
	}
	for i := range 40 {
		a := answer("a", "yes", 1)
		a.Verdict, a.Domain, a.Detail.Domain = Correct, "math", "angles"
		if i%2 == 0 {
			a.Verdict, a.Detail.Domain = Incorrect, "math"
		}
		w.ask(fmt.Sprintf("q%d", i), Result{Winner: "a", Domains: []choice.Share{{Domain: "math", Weight: 1}}}, a)
	}
	for i := range MinSightingsOf {
		r, err := w.ResolveDomain(t.Context(), []string{"a", "b"}[i%2], "angles", false, near)
		if err != nil || r.Domain != "math" || !r.Candidate {
			t.Fatal(r, err)
		}
	}
	if n, err := w.Review(t.Context()); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if r, err := w.ResolveDomain(t.Context(), "a", "angles", false, nil); err != nil || r.Domain != "math.angles" || r.Candidate {
		t.Errorf("%+v, %v", r, err)
	}
	records, err := w.Records(t.Context(), []string{"a"})
	w.must(err)
	if e := records["a"].Domains["math.angles"]; e.Runs != 14 || e.Wins != 14 {
		t.Errorf("%+v", records["a"].Domains)
	}
}

// MinSightingsOf is a round number of sightings for two models.
const MinSightingsOf = 2 * domains.MinSightings

func TestTheNamesOfAllNodesThatRetireAtOnceGoToTheParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		for _, id := range []string{"code", "code.rust", "code.zig", "code.zig.comptime"} {
			if err := seen(t.Context(), tx, domains.Node{ID: id, Name: strings.TrimPrefix(id, "code."), Aliases: []string{"alias" + strings.ReplaceAll(id, ".", "")}}, 1); err != nil {
				return err
			}
		}
		return nil
	}))
	w.clock.Advance(domains.Retire + time.Hour)
	if n, err := w.Review(t.Context()); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	for _, name := range []string{"aliascoderust", "aliascodezig", "aliascodezigcomptime"} {
		if r, err := w.ResolveDomain(t.Context(), "a", name, false, nil); err != nil || r.Domain != "code" || r.Candidate {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestAllQueriesThatAreTooOldAreDeletedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 2*step + 10 {
		w.ask(fmt.Sprintf("q%d", i), Result{Winner: "a"}, answer("a", "yes", 1))
	}
	w.clock.Advance(MaxAge)
	_, err := w.prune(t.Context())
	w.must(err)
	for _, table := range []string{"council_queries", "council_stages", "model_runs"} {
		var n int
		w.must(w.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table))
		if n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
}

func TestWhatACallCostIsStoredWithoutAReportedConfidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("q1", Result{})
	cost := int64(12)
	w.must(w.Save(t.Context(), Stage{Query: "q1", Stage: StageAnswer, Model: "a", Content: "x", Detail: Detail{MicroUSD: &cost, InputTokens: 5, Confidence: math.NaN()}}))
	stages, err := w.Stages(t.Context(), "q1")
	if err != nil || len(stages) != 1 || stages[0].Detail.MicroUSD == nil || stages[0].Detail.InputTokens != 5 {
		t.Errorf("%+v, %v", stages, err)
	}
	if v := micro(math.Inf(1)); v != nil {
		t.Errorf("infinity is stored as %d", *v)
	}
}

// Only what is known to contradict a right answer is wrong: d says something else, of which
// nothing is known, e agrees with both sides.
func TestAPickIsAgainstThoseAloneThatContradictIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("q1", Result{Winner: "a", Callout: choice.CalloutDisagreement, Note: Note{Contradict: [][2]string{{"b", "c"}}}},
		answer("a", "It is 1.", 1), answer("b", "One.", 1), answer("c", "It is 2.", 2), answer("d", "It depends.", 3), answer("e", "It is 1 or 2.", 4))
	p, err := w.Pick(t.Context(), 7, "q1", "a")
	if err != nil || !slices.Equal(p.Same, []string{"a", "b"}) {
		t.Errorf("%+v, %v", p, err)
	}
	records, err := w.Records(t.Context(), []string{"a", "b", "c", "d", "e"})
	w.must(err)
	for model, want := range map[string]choice.Evidence{"a": {Wins: 1, Runs: 1}, "b": {Wins: 1, Runs: 1}, "c": {Runs: 1}, "d": {}, "e": {}} {
		if got := records[model].Domains["code"]; got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
}

func TestConversationsHaveTheNamesOfACouncilsTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var rows []struct {
		ID      string  `db:"conversation_id"`
		User    int64   `db:"user_id"`
		Title   *string `db:"title"`
		Project *string `db:"project_id"`
		Created string  `db:"created_at"`
		Updated string  `db:"updated_at"`
	}
	w.must(w.db.Select(t.Context(), &rows, `SELECT conversation_id, user_id, title, project_id, created_at, updated_at FROM council_conversations`))
}

func TestRecordsAndChangesOfScoresAreReadByAnIndex(t *testing.T) {
	t.Parallel()
	storetest.SQLiteOnly(t, "its plans")
	w := newWorld(t)
	where, args := of([]string{"a", "b"})
	one, ofOne := changes("a", w.clock.Now())
	all, ofAll := changes("", w.clock.Now())
	for query, args := range map[string][]any{"SELECT * FROM model_counters" + where: args, "SELECT * FROM model_domains" + where: args, one: ofOne, all: ofAll} {
		var steps []struct {
			ID, Parent, Notused int
			Detail              string
		}
		w.must(w.db.Select(t.Context(), &steps, "EXPLAIN QUERY PLAN "+query, args...))
		if plan := fmt.Sprint(steps); !strings.Contains(plan, "USING INDEX") || strings.Contains(plan, "SCAN model") || strings.Contains(plan, "SCAN audit") {
			t.Errorf("%s: %s", query, plan)
		}
	}
	w.dispute("q1")
	_, err := w.Pick(t.Context(), 7, "q1", "b")
	w.must(err)
	many := []string{"a", "b"}
	for i := range 3 * choice.MaxMembers {
		many = append(many, fmt.Sprint(i))
	}
	for _, models := range [][]string{{"a", "b"}, many} {
		if r, err := w.Records(t.Context(), models); err != nil || len(r) != len(models) || r["b"].Domains["code"].Wins != 1 || r["a"].Domains["code"].Runs != 1 {
			t.Errorf("%v, %v", r, err)
		}
	}
}

func TestAnotherUserSeesNeitherOptionsNorTheLastAnswerNorSettlesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("q1")
	w.ask("q2", Result{Winner: "a"}, answer("a", "yes", 1))
	if o, err := w.Options(t.Context(), 8, "q1"); core.KindOf(err) != core.NotFound || len(o) != 0 {
		t.Errorf("options: %v, %v", o, err)
	}
	if v, err := w.Last(t.Context(), 8, "s1"); core.KindOf(err) != core.NotFound {
		t.Errorf("the last answer: %+v, %v", v, err)
	}
	if v, err := w.Last(t.Context(), 7, "s1"); err != nil || v.ID != "q2" {
		t.Errorf("the user's own: %+v, %v", v, err)
	}
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		b, err := w.Settle(t.Context(), tx, Turn{User: 8, Conversation: "s1", After: "q2", Verdict: Incorrect})
		if b != (Blame{}) {
			t.Errorf("settled: %+v", b)
		}
		return err
	}))
}

// What was picked is more than what the next turn shows, and an open dispute blames no one.
func TestTheNextTurnSaysNothingOfADispute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dispute("q1")
	if b := w.settle(true); b != (Blame{}) {
		t.Errorf("an open dispute: %+v", b)
	}
	if r, err := w.Records(t.Context(), []string{"a", "b"}); err != nil || len(r["a"].Domains)+len(r["b"].Domains) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w.dispute("q2")
	_, err := w.Pick(t.Context(), 7, "q2", "b")
	w.must(err)
	var settled int
	w.must(w.db.Get(t.Context(), &settled, `SELECT settled FROM council_queries WHERE query_id = 'q2'`))
	if settled != 1 {
		t.Error("the next turn would settle what was picked")
	}
}

// b says the same as the answer that was reviewed, c another thing, of d nothing is known.
func TestTheVerdictOfReviewersIsThatOfAllAnswersThatSayTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := answer("a", "It is 1.", 1)
	a.Verdict = Correct
	w.ask("q1", Result{Winner: "a", Note: Note{Contradict: [][2]string{{"c", "a"}}}}, a, answer("b", "1", 1), answer("c", "It is 2.", 2), answer("d", "It depends.", 3))
	records, err := w.Records(t.Context(), []string{"a", "b", "c", "d"})
	w.must(err)
	for model, want := range map[string]choice.Evidence{"a": {Wins: 0.7, Runs: 0.7}, "b": {Wins: 0.7, Runs: 0.7}, "c": {Runs: 0.7}, "d": {}} {
		if got := records[model].Domains["code"]; got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
}

// The same verdict from a stronger source is more evidence, and no second correct answer.
func TestAVerdictThatIsConfirmedMovesTheScoreOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := answer("a", "yes", 1)
	a.Verdict = Incorrect
	w.ask("q1", Result{Winner: "a"}, a)
	if b := w.settle(true); b.Delta != 0 {
		t.Errorf("one wrong answer: %+v", b)
	}
	models, err := w.Models(t.Context())
	if err != nil || models[0].Score != domains.StartScore || models[0].Wrong != 1 || models[0].Verdicts != 1 {
		t.Errorf("%+v, %v", models, err)
	}
}

func TestTheTablesOfTheLedgerAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	count := func(table string) (n int) {
		w.must(w.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table))
		return n
	}
	now := core.Stamp(w.clock.Now())
	w.must(w.db.Tx(t.Context(), func(tx *store.Tx) error {
		for _, q := range []struct {
			text string
			n    int
		}{
			{`INSERT INTO council_queries (query_id, user_id, conversation_id, accuracy_level, asked_level, seed, state, created_at) SELECT 'x' || i, 7, 's1', 'high', 'high', 1, 'done', $2 FROM n`, MaxQueries + 3},
			{`INSERT INTO audit_log (audit_id, user_id, model_id, event_type, score_before, score_after, verdict, created_at) SELECT 'x' || i, 7, 'a', 'score_update', 70, 71, 'correct', $2 FROM n`, MaxAudit + 3},
			{`INSERT INTO domain_candidates (raw_string, nearest_node, similarity, first_seen, last_seen) SELECT 'x' || i, 'general', 0, $2, $2 FROM n`, MaxCandidates + 3},
			{`INSERT INTO model_counters (model_id, score, updated_at) SELECT 'x' || i, 70, $2 FROM n`, MaxModels},
		} {
			if _, err := tx.Exec(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) `+q.text, q.n, now); err != nil {
				return err
			}
		}
		_, err := w.counters(t.Context(), tx, "new")
		return err
	}))
	_, err := w.prune(t.Context())
	w.must(err)
	for table, want := range map[string]int{"council_queries": MaxQueries, "audit_log": MaxAudit, "domain_candidates": MaxCandidates, "model_counters": MaxModels} {
		if n := count(table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
}

func TestAnAttemptAfterACrashFindsTheWholeOfALongAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := Query{ID: "q1", User: 7, Conversation: "s1", Level: choice.High, Asked: choice.High, Question: "?"}
	if _, _, err := w.Begin(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("tea ", 50_000) + "end"
	w.must(w.Save(t.Context(), Stage{Query: "q1", Stage: StageAnswer, Model: "a", Content: long}))
	if stages, err := w.Stages(t.Context(), "q1"); err != nil || len(stages) != 1 || stages[0].Content != long {
		t.Errorf("%d stages, %v", len(stages), err)
	}
}
