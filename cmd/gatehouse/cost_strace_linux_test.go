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

// A message alone waits for the disk three times: the commit that stores it, its
// transcript, the commit of its answer. That it was delivered waits for none.
func TestStraceAMessageAloneWaitsForTheDiskThreeTimes(t *testing.T) {
	needPtrace(t)
	const more = 20
	texts := make([]string, 1+more)
	for i := range texts {
		texts[i] = "where do we stand with this?"
	}
	one, many := strings.Count(traced(t, "", texts[:1]...), "sync("), strings.Count(traced(t, "", texts...), "sync(")
	t.Logf("%d with one message, %d with %d more", one, many-one, more)
	if got := many - one; got > 3*more+4 || got < 2*more { // what a clock may add; more than one message may share
		t.Errorf("%d messages waited for the disk %d times, want %d", more, got, 3*more)
	}
}

// A start with a new vault makes its database without a wait for the disk at each of the
// migrations, of which there are more than sixty.
func TestStraceANewVaultWaitsForTheDiskFewTimes(t *testing.T) {
	needPtrace(t)
	got := strings.Count(traced(t, "", "where do we stand with this?"), "sync(")
	t.Logf("%d with one message", got)
	if got > 40 || got < 5 {
		t.Errorf("a start with a new vault, one message and the end waited for the disk %d times, want at most 40", got)
	}
}

// syncsOf is how often the program puts a transcript on the disk that answers one
// message with so many calls of a tool, at most 8, one a round.
func syncsOf(t *testing.T, calls int) (n int) {
	t.Helper()
	var text strings.Builder
	for i := range calls {
		fmt.Fprintf(&text, "use Glob {\"pattern\":\"*none%d.md\",\"path\":\"../../Public\"}\nthen\n", i)
	}
	for line := range strings.Lines(traced(t, fmt.Sprintf("none%d.md", calls-1), text.String())) {
		if strings.Contains(line, ".jsonl>") && strings.Contains(line, "sync(") {
			n++
		}
	}
	return n
}

// traced has the program answer texts one after the other, the last with an answer that
// contains said, and returns its calls that put files on the disk.
func traced(t *testing.T, said string, texts ...string) string {
	t.Helper()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	defer sim.Close()
	dir, exe := crashDir(t), program(t)
	settings := settingsOf(filepath.Join(dir, "vault"), "", "queue")
	delete(settings, "OPENAI_BASE_URL")
	settings["MODEL"], settings["TELEGRAM_DM_POLICY"], settings["INDEX"] = "local/quote", "open", "off"
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
	u := sim.NewUser("Ada")
	for i, text := range texts {
		m, want := u.Send(text), ""
		if i == len(texts)-1 {
			want = said
		}
		hear(t, sim, u.DM(), m.ID, want)
	}
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
	return string(b)
}
