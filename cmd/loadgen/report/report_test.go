package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPercentilesAndMedians(t *testing.T) {
	var d []time.Duration
	for i := range 100 {
		d = append(d, time.Duration(100-i)*time.Millisecond)
	}
	if got := Summary(d); got != (Percentiles{N: 100, P50: 51, P95: 96, P99: 100, Max: 100}) {
		t.Errorf("%+v", got)
	}
	if Median([]float64{3, 1, 2}) != 2 || Median([]float64{4, 1, 2, 3}) != 2.5 || Median(nil) != 0 {
		t.Error("median")
	}
}

func TestTextBelowTheFiguresIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	for _, text := range []string{"old figures\n", "new figures\n"} {
		if err := writeText(path, text); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text == "old figures\n" {
			if err := os.WriteFile(path, append(raw, "by hand\n"...), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if got := string(raw); !strings.HasPrefix(got, text) || !strings.HasSuffix(got, "by hand\n") || strings.Contains(got, "old") {
			t.Errorf("%q", got)
		}
	}
}

// A search of a million passages has a goal of its own.
func TestGoalsOfTheIndexGoByItsSize(t *testing.T) {
	for passages, want := range map[int]string{100_000: "≥ 2000/s, ≤ 3.00 ms, ≤ 20.0 ms, ≤ 40.0 ms, ≤ 6.00 MiB", 1_000_000: "≥ 2000/s, ≤ 60.0 ms, ≤ 6.00 MiB"} {
		b := Report{}
		b.Index = &Index{IndexFigures: IndexFigures{Passages: passages, Filled: 3000, Grown: 4}, WordTimes: Percentiles{P50: 2, P99: 32}, HybridTimes: Percentiles{P99: 30}}
		var goals []string
		missed := 0
		for _, l := range b.indexGoals() {
			goals = append(goals, l.goal)
			if !l.met {
				missed++
			}
		}
		if got := strings.Join(goals, ", "); got != want || missed > 0 != (passages == 100_000) {
			t.Errorf("%d passages: %s, %d missed", passages, got, missed)
		}
	}
}
