package activity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	if len(os.Args) > 3 {
		w.model = writer()
	}
	fmt.Println("ready")
	if _, err := w.Pass(context.Background()); err != nil {
		panic(err)
	}
	os.Exit(0)
}

var message = regexp.MustCompile(`Chat (\w+), message \d+\.`)

// writer returns a model that names conversations by their chat, and sums exchanges up by their message.
func writer() *model {
	return &model{say: func(prompt, text string) (string, error) {
		m := message.FindStringSubmatch(text)
		if strings.Contains(prompt, "name conversations") {
			return "About " + m[1], nil
		}
		return m[0], nil
	}}
}

// quiet is a test that has no end.
type quiet struct{ testing.TB }

func (*quiet) Helper()           {}
func (*quiet) Cleanup(func())    {}
func (*quiet) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Killed at random moments, again and again, it loses no exchange, writes none twice,
// and leaves no torn file.
func TestKilledAtAnyMomentItLosesAndDoublesNothing(t *testing.T) {
	const conversations = 6
	killAgainAndAgain(t, t.TempDir(), nil, func(w *world, n int) {
		for c := range conversations {
			w.says(ownChat(fmt.Sprint("c", c)), fmt.Sprintf("Chat %d, message %d.", c, n), "Yes.")
		}
	})
}

// With a model, titles are written too: each conversation that began before a kill has its own in
// the end, and one entry of the log under it.
func TestKilledAtAnyMomentItWritesEachTitle(t *testing.T) {
	dir := t.TempDir()
	w := killAgainAndAgain(t, dir, writer(), func(w *world, n int) {
		w.says(ownChat(fmt.Sprint("t", n)), fmt.Sprintf("Chat t%d, message 0.", n), "Yes.")
		w.says(ownChat(fmt.Sprint("t", n/2)), fmt.Sprintf("Chat t%d, message %d.", n/2, n+1), "Yes.")
	})
	db := storetest.OpenAt(t, filepath.Join(dir, "test.db"), w.clock)
	defer db.Close()
	var titles []string
	if err := db.Select(t.Context(), &titles, `SELECT title FROM sessions WHERE title_source = 'model'`); err != nil {
		t.Fatal(err)
	}
	log := w.file("Daily/chat-log/2026-01-28.md") + w.file("Daily/chat-log/2026-01-29.md")
	for n := range w.n / 2 {
		if title := fmt.Sprint("About t", n); !slices.Contains(titles, title) || strings.Count(log, "**"+title+"**\n") != 1 {
			t.Errorf("%s is not the title of a conversation and of one entry of the log", title)
		}
	}
}

// killAgainAndAgain has exchanges answered, and a process that follows them killed at a random
// moment, 50 times; the last one is not killed. It returns the world, whose database is closed.
func killAgainAndAgain(t *testing.T, dir string, m *model, say func(w *world, n int)) (w *world) {
	t.Helper()
	kills := 50
	if testing.Short() {
		kills = 10
	}
	clock := coretest.NewClock(time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC))
	storetest.Seed(t, filepath.Join(dir, "test.db"))
	args := []string{childArg, dir}
	if m != nil {
		args = append(args, "titles")
	}
	for n := range kills + 1 {
		db := storetest.OpenAt(t, filepath.Join(dir, "test.db"), clock)
		now := openAt(t, dir, clock, db)
		if now.model = m; w != nil {
			now.n = w.n
		}
		w = now
		say(w, n)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], args...)
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
	return w
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
