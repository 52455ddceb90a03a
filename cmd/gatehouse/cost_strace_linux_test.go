package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
)

// A tool call waits for no disk: its lines are in the file before anybody is
// shown them, and the run's end puts all of them on the disk at once.
func TestStraceAToolCallWaitsForNoDisk(t *testing.T) {
	needPtrace(t)
	one, many := syncsOf(t, 1), syncsOf(t, 8)
	if one == 0 || many != one {
		t.Errorf("the transcript was put on the disk %d times with one call and %d times with eight, want the same", one, many)
	}
}

// syncsOf is how often the program puts a transcript on the disk that answers one
// message with so many calls of a tool, at most 8, one a round.
func syncsOf(t *testing.T, calls int) (n int) {
	t.Helper()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	defer sim.Close()
	dir, exe := crashDir(t), program(t)
	settings := settingsOf(filepath.Join(dir, "vault"), "", "queue")
	delete(settings, "OPENAI_BASE_URL")
	settings["MODEL"], settings["TELEGRAM_DM_POLICY"] = "local/quote", "open"
	settings["TELEGRAM_TOKEN"], settings["TELEGRAM_API_URL"] = sim.Token(), sim.URL()
	settings["GUEST_READ"] = "Public/**"
	if err := os.MkdirAll(filepath.Join(dir, "vault", "Public"), 0o700); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "trace")
	c := startChild(t, dir, settings, "strace", "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync", exe, "serve")
	c.says(t, `"serving"`)
	pid := onlyChild(t, c.cmd.Process.Pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	var text strings.Builder
	for i := range calls {
		fmt.Fprintf(&text, "use Glob {\"pattern\":\"*none%d.md\",\"path\":\"../../Public\"}\nthen\n", i)
	}
	u := sim.NewUser("Ada")
	m := u.Send(text.String())
	hear(t, sim, u.DM(), m.ID, fmt.Sprintf("none%d.md", calls-1))
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.gone(t, patience); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.tail())
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, ".jsonl>") && strings.Contains(line, "sync(") {
			n++
		}
	}
	return n
}
