package library

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/index/meaning"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// The vectors of what is remembered of a user go with the user, once that is stored.
func TestForgettingAUserDropsTheVectorsOfTheirMemory(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	asked := 0
	m := meaning.New(meaning.Options{Clock: clock, Log: slog.New(slog.DiscardHandler), Vectors: func(_ context.Context, _ int64, texts []string) ([][]float32, error) {
		asked = len(texts)
		out := make([][]float32, len(texts))
		for i := range out {
			out[i] = []float32{1, float32(i)}
		}
		return out, nil
	}})
	near := func(user int64) int {
		m.Near(t.Context(), user, user, "tea", []string{"Green tea", "Black tea"})
		return asked
	}
	near(7)
	near(8)
	for _, keep := range []bool{true, false} {
		failed := context.Canceled
		err := db.Tx(t.Context(), func(tx *store.Tx) error {
			Tables{meaning: m}.drop(tx, 7)
			if keep {
				return failed
			}
			return nil
		})
		if (err == failed) != keep {
			t.Fatal(err)
		}
		if got, want := near(7), map[bool]int{true: 1, false: 3}[keep]; got != want {
			t.Errorf("after the deletion was stored: %t; %d texts are embedded, want %d", !keep, got, want)
		}
		if got := near(8); got != 1 {
			t.Errorf("of another user %d texts are embedded", got)
		}
	}
}
