package allowance_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/memory/allowance"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

var (
	none       = allowance.Who{}
	ann, bob   = allowance.Who{User: 2}, allowance.Who{User: 3}
	carl, dora = allowance.Who{User: 4, Guest: true}, allowance.Who{User: 5, Guest: true}
)

// A day is one with 1,000 tokens.
type day struct {
	allowance.Day
	t      *testing.T
	clock  *coretest.Clock
	tokens int64
}

func open(t *testing.T) *day {
	t.Helper()
	d := &day{t: t, clock: coretest.NewClock(time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)), tokens: 1000}
	d.Day = allowance.Day{DB: storetest.Open(t, d.clock), Clock: d.clock, Tokens: func() int64 { return d.tokens }}
	return d
}

func (d *day) tx(f func(context.Context, *store.Tx) error) {
	d.t.Helper()
	if err := d.DB.Tx(d.t.Context(), func(tx *store.Tx) error { return f(d.t.Context(), tx) }); err != nil {
		d.t.Fatal(err)
	}
}

func (d *day) spend(who allowance.Who, tokens int64) {
	d.t.Helper()
	d.tx(func(ctx context.Context, tx *store.Tx) error { return d.Spend(ctx, tx, who, tokens) })
}

func (d *day) left(who allowance.Who, want int64) {
	d.t.Helper()
	if n, err := d.Left(d.t.Context(), who); err != nil || n != want {
		d.t.Errorf("%d are left for %+v, want %d: %v", n, who, want, err)
	}
}

func TestTheAllowanceIsOfADayAndOfAllTogether(t *testing.T) {
	d := open(t)
	d.left(none, 1000)
	d.spend(none, 400)
	d.spend(ann, 300)
	d.left(none, 300)
	d.left(bob, 300)
	d.spend(none, 400)
	d.left(none, 0)
	d.left(bob, 0)
	d.clock.Advance(2 * time.Hour)
	d.left(none, 1000)
	d.spend(ann, 10)
	var n int
	if err := d.DB.Get(t.Context(), &n, `SELECT count(*) FROM memory_tokens`); err != nil || n != 1 {
		t.Errorf("%d rows, those of earlier days too: %v", n, err)
	}
	d.tokens = 0
	d.left(none, 0)
	d.left(ann, 0)
}

func TestAUserUsesAtMostHalfOfTheDay(t *testing.T) {
	d := open(t)
	d.left(ann, 500)
	d.spend(ann, 300)
	d.spend(ann, 300)
	d.left(ann, 0)
	d.left(bob, 400)
}

func TestAGuestUsesAtMostATenthAndAllGuestsAQuarterOfTheDay(t *testing.T) {
	d := open(t)
	d.left(carl, 100)
	d.spend(carl, 120)
	d.left(carl, 0)
	d.left(dora, 100)
	d.spend(dora, 80)
	d.left(dora, 20)
	d.spend(allowance.Who{User: 6, Guest: true}, 60)
	d.left(dora, 0)
	d.left(allowance.Who{User: 7, Guest: true}, 0)
	d.left(ann, 500)
}

func TestForgettingAUserKeepsTheDaysTotalWithoutThem(t *testing.T) {
	d := open(t)
	d.spend(ann, 200)
	d.spend(carl, 50)
	for _, user := range []int64{ann.User, carl.User} {
		d.tx(func(ctx context.Context, tx *store.Tx) error {
			return allowance.Tables{}.Forget(ctx, tx, &core.Removal{Person: core.Person{User: user}})
		})
	}
	d.left(none, 750)
	d.left(ann, 500)
	var n int
	if err := d.DB.Get(t.Context(), &n, `SELECT count(*) FROM memory_tokens WHERE user_id <> 0`); err != nil || n != 0 {
		t.Errorf("%d rows are left of them: %v", n, err)
	}
}

func TestLinkedAccountsHaveUsedWhatBothHave(t *testing.T) {
	d := open(t)
	d.spend(ann, 200)
	d.spend(bob, 100)
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		return allowance.Tables{}.Merge(ctx, tx, bob.User, ann.User)
	})
	d.left(ann, 200)
	d.left(bob, 500)
}
