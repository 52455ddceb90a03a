package usage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

func TestRollupsReportWhatTheLedgerSaysAndStayBounded(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 11, 58, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{})
	r := usage.NewRollups(db, clock, l.Tally)
	call := func(model string, user, tokens int64) {
		record(t, db, l, usage.Row{Run: "r", User: user, Bot: "a", Model: model, Input: tokens, MicroUSD: micro(tokens * 2)})
	}
	fill := func() {
		t.Helper()
		for n := 1000; n >= 1000; {
			var err error
			if n, err = r.Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	chart := func(step time.Duration, n int) usage.Chart {
		t.Helper()
		c, err := r.Read(t.Context(), step, n, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	call("m1", 2, 100)
	fill()
	call("m1", 2, 7) // in the same five minutes, after it was summed
	clock.Advance(4 * time.Minute)
	call("m2", 3, 50)
	fill()
	fill() // again: nothing is counted twice
	c := chart(5*time.Minute, 12)
	if got := fmt.Sprint(c.Series["tokens|m1"][10], c.Series["tokens|m2"][11], c.Total("usd|m1"), c.Total("user_tokens|3")); got != "107 50 214 50" {
		t.Errorf("five minutes: %s in %v", got, c.Series)
	}
	c = chart(time.Hour, 24)
	if got := fmt.Sprint(c.Series["tokens|m1"][22], c.Series["tokens|m2"][23]); got != "107 50" {
		t.Errorf("hours: %s in %v", got, c.Series)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return l.Forget(context.Background(), tx, 3) }); err != nil {
		t.Fatal(err)
	}
	if c = chart(time.Hour, 24); c.Series["user_tokens|3"] != nil || c.Total("tokens|m2") != 50 {
		t.Errorf("after forgetting a person: %v", c.Series)
	}
	// While nobody filled (the gateway was off), two weeks went by.
	clock.Advance(14 * 24 * time.Hour)
	for i := range 60 {
		call(fmt.Sprintf("x%02d", i), 9, int64(1000+i))
	}
	clock.Advance(time.Minute)
	fill()
	c = chart(24*time.Hour, 30)
	if c.Total("tokens|m1") != 107 || c.Len() != 30 {
		t.Errorf("30 days: %v", c.Series)
	}
	models, sum := 0, int64(0)
	for series := range c.Series {
		if len(series) > 7 && series[:7] == "tokens|" && series != "tokens|m1" && series != "tokens|m2" {
			models++
			sum += c.Total(series)
		}
	}
	if want := int64(60*1000 + 59*60/2); models != 41 || sum != want {
		t.Errorf("%d series of models with %d tokens, want the 40 largest and the rest, %d", models, sum, want)
	}
	clock.Advance(40 * 24 * time.Hour)
	fill()
	var rows int
	if err := db.Get(context.Background(), &rows, `SELECT count(*) FROM rollups`); err != nil || rows != 0 {
		t.Errorf("after 40 days %d rows are left, %v", rows, err)
	}
}

// What a model took is in the chart at once, as it is in the ledger, and counted once when it is filled.
func TestAChartHasWhatHappenedSinceTheLastFill(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 11, 58, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{})
	r := usage.NewRollups(db, clock, l.Tally)
	call := func() {
		record(t, db, l, usage.Row{Run: "r", User: 2, Bot: "a", Model: "m1", Input: 100, MicroUSD: micro(9000)})
	}
	want := func(what string, usd int64) {
		t.Helper()
		for _, step := range []time.Duration{5 * time.Minute, time.Hour} {
			if c, err := r.Read(t.Context(), step, 24, time.UTC); err != nil || c.Total("usd|m1") != usd {
				t.Errorf("%s, in steps of %v: %d, want %d: %v", what, step, c.Total("usd|m1"), usd, err)
			}
		}
	}
	fill := func() {
		t.Helper()
		if _, err := r.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	call()
	fill()
	want("filled", 9000)
	call()
	want("a call after it", 18_000)
	clock.Advance(4 * time.Minute) // the next five minutes, and the next hour
	call()
	want("another", 27_000)
	fill()
	want("filled again", 27_000)
}

// A database that is new is charted at once: the month before it, in which
// nothing happened, is skipped and not walked through minute by minute.
func TestTheFirstFillOfANewDatabaseShowsWhatJustHappened(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 11, 58, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{})
	r := usage.NewRollups(db, clock, l.Tally)
	record(t, db, l, usage.Row{Run: "r", User: 2, Bot: "a", Model: "m1", Input: 100, MicroUSD: micro(1)})
	if _, err := r.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := r.Read(t.Context(), time.Hour, 24, time.UTC)
	if err != nil || c.Total("tokens|m1") != 100 {
		t.Errorf("after one Fill: %v, %v", c.Series, err)
	}
}

// Of a month with a message a day, the first Fill skips what is between them, and
// all of it is charted at once.
func TestTheFirstFillShowsAMonthInWhichLittleHappened(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 2, 11, 58, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	l := usage.New(nil, usage.Budgets{})
	r := usage.NewRollups(db, clock, l.Tally)
	for range 28 {
		record(t, db, l, usage.Row{Run: "r", User: 2, Bot: "a", Model: "m1", Input: 100, MicroUSD: micro(1)})
		clock.Advance(25 * time.Hour)
	}
	if _, err := r.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := r.Read(t.Context(), 24*time.Hour, 31, time.UTC)
	if err != nil || c.Total("tokens|m1") != 2800 {
		t.Errorf("after one Fill: %v, %v", c.Series, err)
	}
}
