package inbound

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// A date that no stamp can hold would make its update one that can never be
// stored, and the bot deaf behind it.
func TestAnImpossibleDateIsNowAndTheUpdateCanBeStored(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, seconds := range []int64{253402300800, 1e12, 1<<40 - 1, 1 << 40, math.MaxInt64, 0, -1, math.MinInt64} {
		got := at(seconds, now)
		if !got.Equal(now) {
			t.Errorf("%d is %v", seconds, got)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%d: %v", seconds, err)
		}
	}
	if got := at(253402300799, now); got.Year() != 9999 {
		t.Errorf("the last second is %v", got)
	}
}
