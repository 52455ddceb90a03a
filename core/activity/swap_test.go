package activity_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core/activity"
)

// put writes a file of the vault.
func (w *world) put(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// What another program saves between reading a file and replacing it is kept, also where
// the file is as large and as old as before.
func TestWhatIsSavedWhileTheLogIsWrittenIsKept(t *testing.T) {
	w := open(t)
	w.says(ownChat("c1"), "One.", "Yes.")
	w.pass()
	at := time.Now().Add(-time.Hour)
	for _, name := range []string{logFile, linesFile} {
		w.put(name, w.file(name)+"mine\n")
		if err := os.Chtimes(filepath.Join(w.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	saves := map[string]bool{}
	w.Between(func(name string) {
		if !saves[name] {
			saves[name] = true
			w.put(name, strings.Replace(w.file(name), "mine\n", "ours\n", 1))
			if err := os.Chtimes(filepath.Join(w.dir, name), at, at); err != nil {
				t.Error(err)
			}
		}
	})
	w.says(ownChat("c1"), "Two.", "Yes.")
	w.pass()
	for _, name := range []string{logFile, linesFile} {
		if got := w.file(name); !strings.Contains(got, "ours\n") || !strings.Contains(got, "Two.") || strings.Contains(got, "mine\n") {
			t.Errorf("%s is\n%s", name, got)
		}
	}
}

// A save that was displaced when the program was killed is put back at the next start, or
// kept beside the file if that was changed since. What was only being written goes.
func TestASaveThatAKillDisplacedIsPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		now, temp, want string
		conflict        bool
	}{
		"displaced":                     {"written", "saved", "saved", false},
		"displaced, and changed since":  {"newer", "saved", "newer", true},
		"what was replaced":             {"written", "older", "written", false},
		"torn, and nothing was changed": {"older", "wri", "older", false},
		"put back":                      {"saved", "saved", "saved", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			dir := filepath.Dir(logFile)
			temp := filepath.Join(dir, activity.TempOf(logFile, []byte("older"), []byte("written")))
			w.put(logFile, c.now)
			w.put(temp, c.temp)
			w.Sweep()
			if got := w.file(logFile); got != c.want {
				t.Errorf("the file is %q, want %q", got, c.want)
			}
			beside, _ := filepath.Glob(filepath.Join(w.dir, dir, "*-conflict-*.md"))
			if (len(beside) == 1) != c.conflict {
				t.Errorf("beside it: %q", beside)
			}
			if left, _ := filepath.Glob(filepath.Join(w.dir, dir, ".*")); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
