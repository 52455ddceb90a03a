package charged_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
	"gatehouse/core/usage/charged"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A model answers with a text, or fails.
type model struct {
	about llm.About
	text  string
	took  *core.Tokens
	err   error
	asked int

	meanwhile func() // while it is asked
}

func (m *model) About() llm.About { return m.about }

func (m *model) Reply(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if m.asked++; m.meanwhile != nil {
			m.meanwhile()
		}
		if m.text != "" && !yield(llm.Delta{Text: m.text}, nil) {
			return
		}
		if m.took != nil && !yield(llm.Delta{Usage: m.took}, nil) {
			return
		}
		if m.err != nil {
			yield(llm.Delta{}, m.err)
		}
	}
}

type world struct {
	*testing.T
	db *store.DB
	charged.Caller
}

// open has calls counted within the budgets. "priced" costs a micro-dollar a token, nothing else has a price.
func open(t *testing.T, b usage.Budgets) *world {
	db := storetest.Open(t, coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
	return &world{T: t, db: db, Caller: charged.Caller{DB: db, Usage: usage.New(nil, b), Cost: func(model string, u core.Tokens) (int64, bool) {
		return u.Input + u.Output, model == "priced"
	}}}
}

func (w *world) ask(m llm.Model) (string, int64, error) {
	return w.Ask(w.Context(), m, &llm.Request{}, usage.Row{User: 2, Session: "s", Input: 10, Output: 20}, 100)
}

// rows returns what is stored of the calls.
func (w *world) rows() string {
	w.Helper()
	var rows []struct {
		Model string `db:"model"`
		User  int64  `db:"user_id"`
		In    int64  `db:"input"`
		Out   int64  `db:"output"`
		Cost  *int64 `db:"micro_usd"`
		State string `db:"state"`
	}
	if err := w.db.Select(w.Context(), &rows, `SELECT model, user_id, input, output, micro_usd, state FROM usage ORDER BY id`); err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, r := range rows {
		cost := "no price"
		if r.Cost != nil {
			cost = fmt.Sprint(*r.Cost)
		}
		all = append(all, fmt.Sprint(r.Model, " ", r.User, " ", r.In, "+", r.Out, " ", cost, " ", r.State))
	}
	return strings.Join(all, "; ")
}

var down = &llm.Fault{Code: llm.CodeUnavailable, Text: "down"}

func TestACallIsRecordedAsItWasCountedElseAsExpectedElseNotAtAll(t *testing.T) {
	for want, m := range map[string]*model{
		"priced 2 7+3 10 settled":   {text: "hi", took: &core.Tokens{Input: 7, Output: 3}},
		"priced 2 10+20 30 settled": {text: "hi", err: down},
		"":                          {err: down},
	} {
		m.about = llm.About{Name: "priced"}
		w := open(t, usage.Budgets{UserDay: usage.Budget{MicroUSD: 1000}})
		text, _, err := w.ask(m)
		if text != m.text || !errors.Is(err, m.err) || w.rows() != want {
			t.Errorf("%q, %v; stored: %q, want %q", text, err, w.rows(), want)
		}
	}
}

func TestACouncilsCallHasThePriceOfTheMemberThatIsAsked(t *testing.T) {
	w := open(t, usage.Budgets{UserDay: usage.Budget{MicroUSD: 1000}})
	m := &model{about: llm.About{Name: "council/high", PricedAs: "priced"}, text: "hi", took: &core.Tokens{Input: 7, Output: 3}}
	if _, spent, err := w.ask(m); err != nil || spent != 10 || w.rows() != "priced 2 7+3 10 settled" {
		t.Errorf("%d tokens, %v; stored: %q", spent, err, w.rows())
	}
}

func TestAModelOfAChainIsReservedByItsOwnPriceAndLeftOutWithoutOneUnderADollarBudget(t *testing.T) {
	first := &model{about: llm.About{Name: "priced"}, err: down}
	other := &model{about: llm.About{Name: "own/model"}, text: "hi", took: &core.Tokens{Input: 7, Output: 3}}
	w := open(t, usage.Budgets{UserDay: usage.Budget{MicroUSD: 1000}})
	var f *llm.Fault
	if _, _, err := w.ask(llm.Fallback(first, other)); !errors.As(err, &f) || other.asked != 0 || !strings.Contains(f.Err.Error(), "own/model is left out") || w.rows() != "" {
		t.Errorf("under a budget in dollars: %v, asked %d times, stored %q", err, other.asked, w.rows())
	}
	w = open(t, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	if text, _, err := w.ask(llm.Fallback(first, other)); err != nil || text != "hi" || w.rows() != "own/model 2 7+3 no price settled" {
		t.Errorf("under a budget in tokens: %q, %v, stored %q", text, err, w.rows())
	}
}

// While the next model is reserved, the one before it takes no room: it did not answer.
func TestAModelOfAChainTakesTheRoomOfTheOneBefore(t *testing.T) {
	w := open(t, usage.Budgets{UserDay: usage.Budget{Tokens: 45}})
	first := &model{about: llm.About{Name: "priced"}, err: down}
	second := &model{about: llm.About{Name: "council/high", PricedAs: "own/model"}, text: "hi", took: &core.Tokens{Input: 7, Output: 3}}
	if text, _, err := w.ask(llm.Fallback(first, second)); err != nil || text != "hi" || w.rows() != "own/model 2 7+3 no price settled" {
		t.Errorf("%q, %v, stored %q", text, err, w.rows())
	}
}

func TestAFaultOfAModelIsNoRefusalOfABudgetWhereItsFallbackIsLeftOut(t *testing.T) {
	w := open(t, usage.Budgets{UserDay: usage.Budget{MicroUSD: 1000}})
	_, _, err := w.ask(llm.Fallback(&model{about: llm.About{Name: "priced"}, err: down}, &model{about: llm.About{Name: "own/model"}}))
	if errors.As(err, new(*usage.Refusal)) || core.KindOf(err) == core.Busy || !strings.Contains(err.Error(), "down") {
		t.Errorf("%v", err)
	}
}

func TestACallThatIsBrokenOffByAStopIsNotRecordedAndOneThatTimesOutIs(t *testing.T) {
	for cause, want := range map[error]string{context.Canceled: "", context.DeadlineExceeded: "priced 2 10+20 30 settled"} {
		w := open(t, usage.Budgets{UserDay: usage.Budget{MicroUSD: 1000}})
		ctx, cancel := context.WithCancelCause(w.Context())
		m := &model{about: llm.About{Name: "priced"}, err: cause, meanwhile: func() { cancel(cause) }}
		if _, _, err := w.Ask(ctx, m, &llm.Request{}, usage.Row{User: 2, Input: 10, Output: 20}, 100); !errors.Is(err, cause) || w.rows() != want {
			t.Errorf("%v: %v, stored %q", cause, err, w.rows())
		}
	}
}

// Who has a call made beside a turn reads no warning: it is the next turn's.
func TestAWarningIsLeftToTheUsersNextTurn(t *testing.T) {
	w := open(t, usage.Budgets{UserDay: usage.Budget{Tokens: 100}})
	if _, _, err := w.ask(&model{about: llm.About{Name: "priced"}, text: "hi", took: &core.Tokens{Input: 70, Output: 12}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Ask(w.Context(), &model{about: llm.About{Name: "priced"}, text: "hi", took: &core.Tokens{Input: 1}}, &llm.Request{}, usage.Row{User: 2, Input: 1}, 100); err != nil {
		t.Fatal(err)
	}
	if _, crossed, err := w.Usage.Reserve(w.Context(), w.db, usage.Row{User: 2, Model: "priced", Input: 1}); err != nil || crossed == nil {
		t.Errorf("the turn is not warned: %v", err)
	}
}

func TestAnErrorOfTheDatabaseIsSaidUnlessAnotherModelOfTheChainAnswers(t *testing.T) {
	storetest.SQLiteOnly(t, "the error is made in its words")
	w := open(t, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	if err := w.db.Tx(w.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(w.Context(), `CREATE TRIGGER broken BEFORE INSERT ON usage WHEN new.model = 'second' BEGIN SELECT RAISE(ABORT, 'no such disk'); END`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	first, second := &model{about: llm.About{Name: "priced"}, err: down}, &model{about: llm.About{Name: "second"}}
	third := &model{about: llm.About{Name: "third"}, text: "hi"}
	if text, _, err := w.ask(llm.Fallback(first, second, third)); err != nil || text != "hi" || second.asked != 0 {
		t.Errorf("%q, %v", text, err)
	}
	var f *llm.Fault
	if _, _, err := w.ask(llm.Fallback(first, second)); !errors.As(err, &f) || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("without a third: %v", err)
	}
}

func TestTheCallOfAUserWhoWasForgottenMeanwhileIsNoOnes(t *testing.T) {
	w := open(t, usage.Budgets{UserDay: usage.Budget{Tokens: 1000}})
	w.Known = func(context.Context, store.Queryer, int64) (bool, error) { return false, nil }
	m := &model{about: llm.About{Name: "priced"}, text: "hi", took: &core.Tokens{Input: 7, Output: 3}}
	if _, _, err := w.ask(m); err != nil || w.rows() != "priced 0 7+3 10 settled" {
		t.Errorf("%v; stored: %q", err, w.rows())
	}
}

func TestACallWithoutRoomInTheBudgetIsNotMade(t *testing.T) {
	w := open(t, usage.Budgets{UserDay: usage.Budget{Tokens: 20}})
	m := &model{about: llm.About{Name: "priced"}, text: "hi"}
	var refused *usage.Refusal
	if _, _, err := w.ask(m); !errors.As(err, &refused) || m.asked != 0 || w.rows() != "" {
		t.Errorf("%v, asked %d times, stored %q", err, m.asked, w.rows())
	}
}
