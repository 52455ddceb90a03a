package watch_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/coretest"
	"gatehouse/core/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 5 * time.Minute

func TestFilesThatChangeWithoutEndAreReadAllTheSame(t *testing.T) {
	const most, step = 2 * time.Second, 150 * time.Millisecond // a step is too short to settle
	dir, clock, seen := t.TempDir(), coretest.NewClock(time.Time{}), make(chan string, 1000)
	w := watch.New(watch.Options{What: "files", Clock: clock, Log: slog.New(slog.DiscardHandler), Concerns: func(file string) bool {
		seen <- file
		return true
	}})
	defer w.Close()
	if !w.Folders([]string{dir, filepath.Join(dir, "missing")}) || w.Folders([]string{dir}) {
		t.Fatal("a folder is watched anew when it was not before, and only then")
	}
	changed := make(chan bool, 1)
	go func() { changed <- w.Changed(t.Context(), most) }()
	clock.AwaitWaiters(1)
	for at := time.Duration(0); at < most; at += step {
		file := filepath.Join(dir, at.String())
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for what := ""; what != file; {
			select {
			case what = <-seen:
			case <-changed:
				t.Fatalf("it was to be read after %v, before all had settled", at)
			case <-time.After(patience):
				t.Fatal("the change was not seen")
			}
		}
		clock.Advance(step)
	}
	select {
	case yes := <-changed:
		if !yes {
			t.Error("it ended")
		}
	case <-time.After(patience):
		t.Error("files that never settle are never read")
	}
}
