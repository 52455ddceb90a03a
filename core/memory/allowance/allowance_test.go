package allowance_test

import (
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/memory/allowance"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheAllowanceIsOfADayAndOfAllTogether(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC))
	d := allowance.Day{DB: storetest.Open(t, clock), Clock: clock, Tokens: func() int64 { return 100 }}
	other := d
	left := func(want int64) {
		t.Helper()
		if n, err := d.Left(t.Context()); err != nil || n != want {
			t.Errorf("%d left, want %d: %v", n, want, err)
		}
	}
	left(100)
	for _, x := range []allowance.Day{d, other, d} {
		if err := x.Spend(t.Context(), 30); err != nil {
			t.Fatal(err)
		}
	}
	left(10)
	if err := d.Spend(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	left(0)
	clock.Advance(2 * time.Hour)
	left(100)
	d.Tokens = func() int64 { return 0 }
	left(0)
}
