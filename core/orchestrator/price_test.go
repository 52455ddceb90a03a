package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
	"gatehouse/core/usage"
)

// priced has calls reserved under a budget in dollars, where only "first" and "second" have a price. It
// returns the models of the reservations.
func (h *house) priced() (o *orchestrator.Orchestrator, reserved *[]string) {
	reserved = new([]string)
	return h.with(func(o *orchestrator.Options) {
		o.Reserve = func(_ context.Context, r usage.Row) (int64, string, error) {
			if r.MicroUSD == nil {
				return 0, "", texts.Error(core.Busy, "budget_unpriced", texts.With{"Whose": "user", "Budget": "$1.00"})
			}
			*reserved = append(*reserved, r.Model)
			return int64(len(*reserved)), "", nil
		}
		o.Cost = func(model string, u core.Tokens) (int64, bool) {
			return u.Input + u.Output, model == "first" || model == "second"
		}
	}), reserved
}

func down(_ context.Context, yield func(llm.Delta, error) bool) {
	yield(llm.Delta{}, &llm.Fault{Code: llm.CodeUnavailable, Text: "down"})
}

func TestAModelOfAChainWithoutAPriceDoesNotAnswerUnderADollarBudget(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	first, own := &model{name: "first", reply: down}, &model{name: "own", reply: says("from afar")}
	o, _ := h.priced()
	h.chain = llm.Fallback(first, own)
	res, err := o.Run(t.Context(), h.turn("r1", 1, "please"), func(core.Event) {})
	if failed, ok := res.Terminal.(core.Failed); err != nil || !ok || failed.Message != "down" || len(own.calls) != 0 {
		t.Errorf("%+v, %v; the model without a price was asked %d times", res.Terminal, err, len(own.calls))
	}
}

// Each call counts under the name and the price of the model that answers, from the first round on.
func TestEachModelOfAChainIsReservedAndRecordedByItself(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	first := &model{name: "first", reply: down}
	second := &model{name: "second", reply: replies(func(_ context.Context, yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Call: &core.Block{Type: "tool_use", ID: "c1", Name: "Look", Input: json.RawMessage(`{}`)}}, nil) && yield(llm.Delta{Usage: &core.Tokens{Output: 7}}, nil)
	}, says("done"))}
	o, reserved := h.priced()
	h.chain = llm.Fallback(first, second)
	res, err := o.Run(t.Context(), h.turn("r1", 1, "please"), func(core.Event) {})
	if done, ok := res.Terminal.(core.Done); err != nil || !ok || done.Usage.CostUSD == nil {
		t.Fatalf("%+v, %v", res.Terminal, err)
	}
	// Each of the two rounds begins with the first model.
	if got := strings.Join(*reserved, " "); got != "first second first second" {
		t.Errorf("reserved are calls of %q", got)
	}
	h.tx(res.Write)
	var rows []struct {
		Model  string
		Output int64
	}
	if err := h.db.Select(t.Context(), &rows, `SELECT model, output FROM usage ORDER BY id`); err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	if got := fmt.Sprint(rows[0]); got != "{second 7}" || rows[1].Model != "second" {
		t.Errorf("recorded are %s", got)
	}
}

func TestCompactOfACouncilWithADollarBudgetIsACallOfAMember(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	o, reserved := h.priced()
	h.model.reply = says(strings.Repeat("word ", 4000))
	for i := range 4 {
		if res, err := h.Run(t.Context(), h.turn(fmt.Sprint("r", i), 1, "go on"), func(core.Event) {}); err != nil {
			t.Fatal(res, err)
		}
	}
	h.model.name, h.model.priced, h.model.reply = "council/high", "first", says("## GOAL\nwords")
	turn := h.turn("c1", 1, "/compact")
	if _, _, _, err := o.Compact(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(*reserved, " "); got != "first" {
		t.Errorf("reserved are calls of %q", got)
	}
}
