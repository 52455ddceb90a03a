package quota

import (
	"errors"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/voice"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestAUserHasTheLimitOfADay(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Date(2026, 1, 28, 22, 0, 0, 0, time.UTC))
	s := New(storetest.Open(t, clock), clock, 10*time.Minute)
	ctx := t.Context()
	for range 2 {
		if err := errors.Join(s.Check(ctx, 7), s.Add(ctx, 7, 5*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Check(ctx, 7); !errors.Is(err, voice.ErrQuota) {
		t.Errorf("used up: %v", err)
	}
	if err := s.Check(ctx, 8); err != nil {
		t.Errorf("another user: %v", err)
	}
	clock.Advance(2 * time.Hour)
	if err := s.Check(ctx, 7); err != nil {
		t.Errorf("the next day: %v", err)
	}
	free := New(s.db, clock, 0)
	if err := errors.Join(free.Add(ctx, 7, 100*time.Hour), free.Check(ctx, 7)); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestWhatAUserHasUsedMovesAndIsForgotten(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	s := New(storetest.Open(t, clock), clock, time.Hour)
	ctx := t.Context()
	if err := errors.Join(s.Add(ctx, 7, time.Minute), s.Add(ctx, 8, time.Second)); err != nil {
		t.Fatal(err)
	}
	used := func(user int64) time.Duration {
		d, err := s.Used(ctx, user)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if err := s.db.Tx(ctx, func(tx *store.Tx) error { return s.Merge(ctx, tx, 7, 8) }); err != nil || used(7) != 0 || used(8) != 61*time.Second {
		t.Errorf("%v: %v and %v", err, used(7), used(8))
	}
	if err := s.db.Tx(ctx, func(tx *store.Tx) error { return s.Forget(ctx, tx, &core.Removal{Person: core.Person{User: 8}}) }); err != nil || used(8) != 0 {
		t.Errorf("%v: %v", err, used(8))
	}
	if err := s.Add(ctx, 9, time.Second); err != nil {
		t.Fatal(err)
	}
	clock.Advance(keep)
	if n, err := s.Chores()[0].Run(ctx); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	clock.Advance(24 * time.Hour)
	if n, err := s.Chores()[0].Run(ctx); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
