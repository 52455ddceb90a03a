package activity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
)

type jsonRaw = json.RawMessage

const childArg = "activity-child"

// child is a process that follows the runs of a database until it is killed or done.
func child() {
	dir := os.Args[2]
	t := &quiet{}
	clock := coretest.NewClock(time.Now())
	w := openAt(t, dir, clock, storetest.OpenAt(t, filepath.Join(dir, "test.db"), clock))
	fmt.Println("ready")
	if _, err := w.Pass(context.Background()); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// quiet is a test that has no end.
type quiet struct{ testing.TB }

func (*quiet) Helper()           {}
func (*quiet) Cleanup(func())    {}
func (*quiet) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Killed at random moments, again and again, it loses no exchange, writes none twice,
// and leaves no torn file.
func TestKilledAtAnyMomentItLosesAndDoublesNothing(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 10
	}
	const conversations = 6
	dir := t.TempDir()
	clock := coretest.NewClock(time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC))
	storetest.Seed(t, filepath.Join(dir, "test.db"))
	var w *world
	for n := range kills + 1 {
		db := storetest.OpenAt(t, filepath.Join(dir, "test.db"), clock)
		now := openAt(t, dir, clock, db)
		if w != nil {
			now.n = w.n
		}
		w = now
		for c := range conversations {
			w.says(ownChat(fmt.Sprint("c", c)), fmt.Sprintf("Chat %d, message %d.", c, n), "Yes.")
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], childArg, dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if n < kills {
			_, _ = out.Read(make([]byte, 8)) // it works from now on
			<-time.After(time.Duration(rand.IntN(50_000)) * time.Microsecond)
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil && n == kills {
			t.Fatal(err)
		}
		if lines, _ := w.whole(); n%10 == 9 {
			t.Logf("%d lines of %d are written after %d kills", lines, w.n, n+1)
		}
	}
	lines, logs := w.whole()
	if lines != w.n || logs != w.n {
		t.Errorf("%d lines and %d exchanges in logs, want %d", lines, logs, w.n)
	}
}

// whole checks that no file is torn and nothing is in it twice, and counts.
func (w *world) whole() (lines, said int) {
	w.t.Helper()
	seen := map[string]bool{}
	once := func(what string) {
		if seen[what] {
			w.t.Errorf("%s is there twice", what)
		}
		seen[what] = true
	}
	for _, day := range []string{"2026-01-28", "2026-01-29"} {
		text := w.file("Daily/.activity/" + day + ".jsonl")
		for line := range strings.Lines(text) {
			var l struct {
				Session string `json:"session_id"`
				Number  int    `json:"exchange_number"`
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.HasSuffix(line, "\n") {
				w.t.Errorf("a torn line: %q", line)
			}
			once(fmt.Sprint(l.Session, " ", l.Number))
			lines++
		}
		text = w.file("Daily/chat-log/" + day + ".md")
		if text != "" && !strings.HasSuffix(text, ".\n") {
			w.t.Errorf("a torn log: %q", text)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, ". Chat ") {
				once(day + line)
				said++
			}
			if strings.HasPrefix(line, "# para:") {
				once(line)
			}
		}
	}
	return lines, said
}
