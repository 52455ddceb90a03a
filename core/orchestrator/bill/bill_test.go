package bill_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/bill"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// price is a millionth of a dollar for each token.
func price(_ string, u core.Tokens) (int64, bool) { return u.Input + u.Output, true }

// A budget remembers what it was asked for.
type budget struct {
	asked []usage.Row
	err   error
}

func (b *budget) reserve(_ context.Context, r usage.Row) (int64, string, error) {
	b.asked = append(b.asked, r)
	return int64(len(b.asked)), "half is used", b.err
}

func request(bytes int) *llm.Request {
	return &llm.Request{System: string(make([]byte, bytes)), MaxTokens: 10}
}

func TestBillReservesWhatEarlierCallsTookBeyondTheirReservation(t *testing.T) {
	t.Parallel()
	var asks budget
	b := &bill.Bill{Of: usage.Row{Run: "r1", User: 2}, Cost: price, Reserve: asks.reserve}
	first, notice, err := b.Ask(t.Context(), "a/model", request(400), usage.Row{})
	if err != nil || notice != "half is used" || first.ID != 1 || first.Run != "r1" || first.User != 2 || first.Model != "a/model" {
		t.Fatalf("the first reservation is %+v, %q, %v", first, notice, err)
	}
	b.Add("a/model", &core.Tokens{Input: 500, Output: 50}, nil, first)
	if _, _, err := b.Ask(t.Context(), "a/model", request(400), usage.Row{}); err != nil {
		t.Fatal(err)
	}
	if got := asks.asked[1]; got.Input != 100 || got.Output != 10+440 || *got.MicroUSD != 110+440 {
		t.Errorf("the second call is reserved with %d + %d tokens for %d, want 100 + 450 for 550", got.Input, got.Output, *got.MicroUSD)
	}
}

// What the replaced reservation had taken on is taken on by the one in its place, and then by no other.
func TestBillTakesOnWhatIsOwedOnceWhereAReservationIsReplaced(t *testing.T) {
	t.Parallel()
	var asks budget
	b := &bill.Bill{Of: usage.Row{Run: "r1", User: 2}, Cost: price, Reserve: asks.reserve}
	ask := func(instead usage.Row) usage.Row {
		t.Helper()
		row, _, err := b.Ask(t.Context(), "a/model", request(400), instead)
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	b.Add("a/model", &core.Tokens{Input: 500, Output: 50}, nil, ask(usage.Row{})) // 440 more than was reserved
	second := ask(usage.Row{})
	third := ask(second)
	b.Add("a/model", &core.Tokens{Input: 100, Output: 10}, nil, third)
	ask(usage.Row{})
	for i, want := range []int64{110, 550, 550, 110} {
		if r := asks.asked[i]; r.Input+r.Output != want || *r.MicroUSD != want {
			t.Errorf("call %d is reserved with %d tokens for %d, want %d", i+1, r.Input+r.Output, *r.MicroUSD, want)
		}
	}
	if asks.asked[2].ID != second.ID {
		t.Errorf("the third takes the place of the reservation %d, want %d", asks.asked[2].ID, second.ID)
	}
}

func TestBillReturnsARefusalOfABudget(t *testing.T) {
	t.Parallel()
	asks := budget{err: core.Errorf(core.Busy, "the budget is used up")}
	b := &bill.Bill{Cost: price, Reserve: asks.reserve}
	if _, _, err := b.Ask(t.Context(), "a/model", request(4), usage.Row{}); core.KindOf(err) != core.Busy {
		t.Errorf("err = %v, want the refusal", err)
	}
	if rows := b.Open(); len(rows) != 0 {
		t.Errorf("a refused call is to be recorded: %+v", rows)
	}
}

func TestBillTakesTheReservationWhereTheProviderReportsNothing(t *testing.T) {
	t.Parallel()
	var asks budget
	b := &bill.Bill{Cost: price, Reserve: asks.reserve}
	reserved, _, err := b.Ask(t.Context(), "a/model", request(400), usage.Row{})
	if err != nil {
		t.Fatal(err)
	}
	if row := b.Add("a/model", nil, nil, reserved); row.Input != 100 || row.Output != 10 || *row.MicroUSD != 110 {
		t.Errorf("row = %+v, want the reservation", row)
	}
	usd := int64(7)
	if row := b.Add("a/model", &core.Tokens{Input: 1}, &usd, usage.Row{}); *row.MicroUSD != 7 {
		t.Errorf("the price is %d, want the given one", *row.MicroUSD)
	}
}

func TestBillTotalsWhatIsRecordedAndWhatIsNot(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, nil)
	ledger := usage.New(nil, usage.Budgets{})
	b := &bill.Bill{Of: usage.Row{Run: "r1", User: 1}, Cost: price, Ledger: ledger}
	b.Add("a/model", &core.Tokens{Input: 5, Output: 1, CacheRead: 3}, nil, usage.Row{})
	rows := b.Open()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return b.Record(t.Context(), tx, rows) }); err != nil {
		t.Fatal(err)
	}
	b.Add("a/model", &core.Tokens{Input: 2}, nil, usage.Row{})
	earlier := int64(20)
	b.Recorded("b/model", bill.Total{Tokens: core.Tokens{Output: 4}, MicroUSD: &earlier})
	usd := int64(6 + 2 + 20)
	want := bill.Total{Tokens: core.Tokens{Input: 7, Output: 5, CacheRead: 3}, MicroUSD: &usd}
	if diff := cmp.Diff(want, b.Total()); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	if open := b.Open(); len(open) != 1 || open[0].Input != 2 {
		t.Errorf("%+v is to be recorded, want the second call alone", open)
	}
	if stored, err := ledger.Spent(t.Context(), db, "r1"); err != nil || stored["r1"].Input != 5 {
		t.Errorf("stored: %+v, %v, want the first call", stored, err)
	}
}

func TestSumHasNoPriceIfOneIsUnknown(t *testing.T) {
	t.Parallel()
	one := int64(1)
	if got := bill.Sum([]usage.Row{{MicroUSD: &one}, {Input: 3}}); got.MicroUSD != nil || got.Input != 3 {
		t.Errorf("sum = %+v, want no price", got)
	}
	if got := bill.Sum(nil); got.MicroUSD != nil {
		t.Errorf("the sum of no calls has the price %d", *got.MicroUSD)
	}
}
