package why

import (
	"context"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	coreask "gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/coretest"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { storetest.Main(m) }

type bound struct{}

func (bound) Current(context.Context, store.Queryer, core.Address) (session.Session, bool, error) {
	return session.Session{ID: "s1"}, true, nil
}

type world struct {
	*testing.T
	db     *store.DB
	ledger *ledger.Store
	*Commands
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := coretest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	box, err := sealed.Create(filepath.Join(t.TempDir(), "keys", "content"))
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(ledger.Options{DB: db, Clock: clock, Seal: box})
	return &world{t, db, l, New(db, l, bound{}, ask.NewButtons(ask.ButtonOptions{DB: db, Clock: clock, Asks: coreask.New(db, clock)}))}
}

// answer stores a question of user 7, disputed or not.
func (w *world) answer(id, callout string) {
	w.Helper()
	ctx := w.Context()
	_, _, err := w.ledger.Begin(ctx, ledger.Query{ID: id, User: 7, Conversation: "s1", Level: choice.High, Asked: choice.Maximum, Question: "How tall?"})
	r := ledger.Result{Query: id, Winner: "x/alpha", Reason: "welfare", Confidence: choice.LabelUncertain, Callout: callout, Calls: 5}
	for i, m := range []string{"x/alpha", "x/beta"} {
		if err == nil {
			err = w.ledger.Save(ctx, ledger.Stage{Query: id, Stage: ledger.StageAnswer, Model: m, Content: "It is *" + m + "*."})
		}
		r.Runs = append(r.Runs, ledger.Run{Model: m, Round: ledger.RoundAnswer, State: "ok", Utility: 0.41, Welfare: 0.83, Claim: i + 1})
	}
	if err == nil {
		err = w.db.Tx(ctx, func(tx *store.Tx) error { return w.ledger.Finish(ctx, tx, r) })
	}
	if err != nil {
		w.Fatal(err)
	}
}

func request(user int64, text string) command.Request {
	return command.Request{User: user, Call: command.Call{Seq: 1, In: &core.Inbound{Address: core.Address{Bot: "b", Chat: "1"}, Text: text}}}
}

func TestWhyShowsWhoWasChosenAndTheFactors(t *testing.T) {
	w := newWorld(t)
	out, err := w.Why(t.Context(), request(7, ""))
	if err != nil || !strings.Contains(out.Text, "No answer") {
		t.Fatalf("%q, %v", out.Text, err)
	}
	w.answer("q1", "")
	out, err = w.Why(t.Context(), request(7, ""))
	if err != nil || len(out.Buttons) != 0 {
		t.Fatal(out, err)
	}
	for _, want := range []string{"rated the answer of **x/alpha** best", "Accuracy high instead of maximum", "weight 0.41, rated 0.83 (shown)", "5 calls"} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("%q is not in %q", want, out.Text)
		}
	}
	if out, err := w.Why(t.Context(), request(8, "")); err != nil || !strings.Contains(out.Text, "No answer") {
		t.Errorf("another user reads %q, %v", out.Text, err)
	}
}

func TestADisputeIsOfferedWithButtonsAndPickedOnce(t *testing.T) {
	w := newWorld(t)
	w.answer("q1", choice.CalloutDisagreement)
	out, err := w.Why(t.Context(), request(7, ""))
	if err != nil || len(out.Buttons) != 2 || out.Buttons[1][0].Label != "Pick x/beta" {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err = w.Pick(t.Context(), request(7, "")); err != nil || !strings.Contains(out.Text, `It is \*x/beta\*`) || len(out.Buttons) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = w.Pick(t.Context(), request(7, "X/BE")); err != nil || !strings.Contains(out.Text, "You picked the answer of **x/beta**") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = w.Pick(t.Context(), request(7, "x/alpha")); err != nil || !strings.Contains(out.Text, "already picked the answer of x/beta") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err = w.Why(t.Context(), request(7, "")); err != nil || !strings.Contains(out.Text, "You picked the answer of **x/beta**") || len(out.Buttons) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestTheButtonOfADisputeIsTheAskersOnly(t *testing.T) {
	w := newWorld(t)
	w.answer("q1", choice.CalloutDisagreement)
	data := command.PickData("q1", "x/alpha")
	if len(command.PickData("01234567-89ab-cdef-0123-456789abcdef", "x/alpha")) > 64 {
		t.Error("the data of a button has more than 64 bytes")
	}
	query, mark, ok := command.PickOf(data)
	if !ok {
		t.Fatal(data)
	}
	if _, err := w.Press(t.Context(), request(8, ""), query, mark); core.KindOf(err) != core.Denied {
		t.Errorf("another user's press: %v", err)
	}
	if _, err := w.Press(t.Context(), request(7, ""), query, "00000000"); core.KindOf(err) != core.Invalid {
		t.Errorf("an unknown mark: %v", err)
	}
	if out, err := w.Press(t.Context(), request(7, ""), query, mark); err != nil || !strings.Contains(out.Text, "You picked the answer of x/alpha.") { // no Markdown on a button
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := w.Why(t.Context(), request(7, "")); err != nil || !strings.Contains(out.Text, "(picked)") || strings.Contains(out.Text, "(shown)") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestWhyTellsComparisonAndReviewApart(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.ledger.Begin(t.Context(), ledger.Query{ID: "q1", User: 7, Conversation: "s1", Level: choice.High, Asked: choice.High, Question: "How tall?"})
	r := ledger.Result{Query: "q1", Winner: "x/alpha", Reason: "welfare", Confidence: choice.LabelHigh, Calls: 3,
		Note: ledger.Note{Judge: &choice.Verdict{Verdict: choice.VerdictAgree}, Reviews: []ledger.Reviewed{{Model: "x/beta"}}}}
	for _, model := range []string{"x/beta", "x/beta"} {
		r.Runs = append(r.Runs, ledger.Run{Model: model, Round: ledger.RoundReview, State: "ok"})
	}
	if err == nil {
		err = w.db.Tx(t.Context(), func(tx *store.Tx) error { return w.ledger.Finish(t.Context(), tx, r) })
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Why(t.Context(), request(7, ""))
	if err != nil || strings.Count(out.Text, "x/beta compared the answers") != 1 || strings.Count(out.Text, "x/beta reviewed the answer") != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}
