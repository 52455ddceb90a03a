package runs_test

import (
	"testing"
	"time"

	"gatehouse/core/runs"
)

func TestAQuantileLiesInItsClass(t *testing.T) {
	counts := make([]int64, len(runs.TookBounds)+1)
	if q := runs.Quantile(counts, 0.5); q != 0 {
		t.Errorf("of nothing: %v", q)
	}
	counts[2], counts[5] = 90, 10 // 0.5 to 1 s, 4 to 8 s
	if q := runs.Quantile(counts, 0.5); q < 500*time.Millisecond || q > time.Second {
		t.Errorf("the median is %v", q)
	}
	if q := runs.Quantile(counts, 0.95); q < 4*time.Second || q > 8*time.Second {
		t.Errorf("p95 is %v", q)
	}
	counts[len(counts)-1] = 1000
	if q := runs.Quantile(counts, 0.99); q != 5*time.Minute {
		t.Errorf("above the last bound: %v", q)
	}
}
