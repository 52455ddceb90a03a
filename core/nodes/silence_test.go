package nodes

import (
	"testing"
	"time"
)

func TestASilenceIsUnbrokenAndOfAllThatServe(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type step struct {
		after time.Duration
		beats string
		lasts bool
	}
	for name, steps := range map[string][]step{
		"one that is not heard of":       {{0, "a 1", false}, {2 * time.Second, "a 1", false}, {4 * time.Second, "a 1", false}, {8 * time.Second, "a 1", false}, {10 * time.Second, "a 1", true}},
		"one that beats":                 {{0, "a 1", false}, {4 * time.Second, "a 1", false}, {8 * time.Second, "a 2", false}, {12 * time.Second, "a 2", false}, {17 * time.Second, "a 2", false}},
		"another one that beats":         {{0, "a 1 b 1", false}, {5 * time.Second, "a 1 b 2", false}, {10 * time.Second, "a 1 b 3", false}, {15 * time.Second, "a 1 b 4", false}},
		"who looks was frozen":           {{0, "a 1", false}, {time.Hour, "a 1", false}, {time.Hour + 4*time.Second, "a 1", false}, {time.Hour + 8*time.Second, "a 1", false}, {time.Hour + 11*time.Second, "a 1", true}},
		"whose clock was set back":       {{time.Hour, "a 1", false}, {time.Minute, "a 1", false}, {time.Minute + 4*time.Second, "a 1", false}},
		"it is longer than any one look": {{0, "a 1", false}, {5 * time.Second, "a 1", false}, {9 * time.Second, "a 1", false}, {13 * time.Second, "a 1", true}},
	} {
		var s silence
		for _, step := range steps {
			if got := s.lasts(step.beats, begun.Add(step.after)); got != step.lasts {
				t.Errorf("%s: after %v it lasts: %v", name, step.after, got)
			}
		}
	}
}
