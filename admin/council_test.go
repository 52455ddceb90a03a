package admin_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/admin"
	admincouncil "gatehouse/admin/council"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// disputed is the question to a council in a full world.
const disputed = "query-1"

// openCouncil fills the options with a real ledger.
func (w *world) openCouncil(t *testing.T, db *store.DB, o *admin.Options) {
	t.Helper()
	box, err := sealed.Create(filepath.Join(t.TempDir(), "keys", "content"))
	if err != nil {
		t.Fatal(err)
	}
	w.council = ledger.New(ledger.Options{DB: db, Clock: w.clock, Seal: box})
	w.finish = func(ctx context.Context, r ledger.Result) error {
		return db.Tx(ctx, func(tx *store.Tx) error { return w.council.Finish(ctx, tx, r) })
	}
	o.Council = admincouncil.Options{Queries: w.council, Figures: w.council}
}

// quarrel has a council be asked, and its members contradict each other. name is of a domain
// that one of them reports, mark stands behind what each says.
func (w *world) quarrel(question, name, mark string) {
	ctx, cost := context.Background(), int64(2400)
	_, _, err := w.council.Begin(ctx, ledger.Query{ID: disputed, User: 2, Conversation: "s", Level: choice.High, Asked: choice.Maximum, Question: question})
	r := ledger.Result{Query: disputed, Winner: "one/alpha", Reason: "welfare", Callout: choice.CalloutDisagreement, Confidence: choice.LabelUncertain, Used: []string{"one/alpha", "two/beta"}, Calls: 5, MicroUSD: &cost,
		Note: ledger.Note{Reviews: []ledger.Reviewed{{Model: "two/beta", Review: choice.Review{Verdict: choice.ReviewIncorrect, Issues: []string{"too deep" + mark}}}}, Left: []string{"three/gamma: no answer in 20 s"}}}
	for i, text := range []string{"Ten centimetres deep." + mark, "Thirty centimetres deep." + mark} {
		model := []string{"one/alpha", "two/beta"}[i]
		if err == nil {
			err = w.council.Save(ctx, ledger.Stage{Query: disputed, Stage: ledger.StageAnswer, Model: model, Content: text})
		}
		r.Runs = append(r.Runs, ledger.Run{Model: model, Round: ledger.RoundAnswer, Response: text, Utility: 0.41, Confidence: 0.9, Welfare: 0.62, State: "ok", Claim: i + 1, Detail: ledger.Detail{LatencyMS: 640, TotalMS: 2100, MicroUSD: &cost}})
	}
	r.Runs = append(r.Runs, ledger.Run{Model: "three/gamma", Round: ledger.RoundAnswer, Utility: math.NaN(), Confidence: math.NaN(), Welfare: math.NaN(), State: "late", Error: "no answer in 20 s"})
	if err == nil {
		err = w.finish(ctx, r)
	}
	if err == nil {
		_, err = w.council.Sight(ctx, "one/alpha", name, nil)
	}
	if err != nil {
		panic(err)
	}
}

func TestCouncil_FiguresQuestionsAndHowOneWasAnswered(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	if a := s.get("/admin/council"); !strings.Contains(a.body, "No council was asked in this time") {
		t.Errorf("%s", a.main())
	}
	s.world.full()
	a := s.get("/admin/council")
	a.has(t, "1 question was asked in 30 days", "one/alpha", "70 of 100", "1.00 times", "after 10 outcomes", "Disputed", "How deep do I plant potatoes?", `href="/admin/council/queries/query-1"`)
	a = s.get("/admin/council/queries/" + disputed)
	a.has(t, "contradict each other", "Accuracy high instead of maximum", "Ten centimetres deep.", "0.62", "too deep", "three/gamma: no answer in 20 s")
	if _, err := s.world.council.Pick(t.Context(), 2, disputed, "two/beta"); err != nil {
		t.Fatal(err)
	}
	s.get("/admin/council/queries/"+disputed).has(t, "The user picked the answer of", "Winner", "by pick")
	s.get("/admin/council/domains").has(t, "garden.potatoes", "Mathematics", "10 domains, 1 candidate")
	if a := s.get("/admin/council/queries/none"); a.status != 404 {
		t.Errorf("status %d", a.status)
	}
}
