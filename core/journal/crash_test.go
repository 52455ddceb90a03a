package journal

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/paraid"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

// writerEnv names the vault in which this test program, started again, appends entries.
const writerEnv = "GATEHOUSE_TEST_JOURNAL"

// fullEnv limits the size of the writer's files, as a full disk does.
const fullEnv = "GATEHOUSE_TEST_JOURNAL_FULL"

// TestWriterProcess is no test: it is the process that TestKillDuringAppends kills. It
// prints the text of each entry once Append has returned.
func TestWriterProcess(t *testing.T) {
	dir := os.Getenv(writerEnv)
	if dir == "" {
		t.Skip("it is started by TestKillDuringAppends_NoEntryIsTornOrLost")
	}
	f, words := openAgain(t, dir), 2000
	if os.Getenv(fullEnv) != "" {
		signal.Ignore(unix.SIGXFSZ)
		limit := unix.Rlimit{Cur: 3 << 20, Max: unix.RLIM_INFINITY}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		words = 60_000
	}
	for n := 0; ; n++ {
		text := fmt.Sprintf("entry %d of %d begins\n\n%s ends", n, os.Getpid(), strings.Repeat("tea ", rand.IntN(words)))
		if _, err := f.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: text}, panel); err != nil {
			fmt.Printf("refused %v: %s\n", core.KindOf(err) == core.Busy, core.TextOf(err))
			return
		}
		fmt.Printf("acknowledged %d of %d\n", n, os.Getpid())
	}
}

// openAgain opens the journals of a vault and its database, which may exist.
func openAgain(t *testing.T, dir string) *fixture {
	t.Helper()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	f := &fixture{t: t, dir: dir}
	f.db = storetest.OpenAt(t, filepath.Join(dir, "test.db"), core.System{})
	f.ids = paraid.New(f.db, v, quietLog)
	f.Store = New(Options{DB: f.db, Vault: v, IDs: f.ids, Rows: f.ids, Clock: ahead{}, Log: quietLog})
	return f
}

// ahead is a clock of later, so that no pass waits.
type ahead struct{ core.System }

func (ahead) Now() time.Time { return time.Now().Add(time.Hour) }

// kills returns how often the writer is killed: more with GATEHOUSE_TEST_ROUNDS.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 10
}

func TestKillDuringAppends_NoEntryIsTornOrLost(t *testing.T) {
	dir := t.TempDir()
	storetest.Seed(t, filepath.Join(dir, "test.db"))
	acknowledged := map[string]bool{}
	for range kills() {
		run(t, dir, time.Duration(rand.IntN(120))*time.Millisecond, acknowledged)
		f := openAgain(t, dir)
		f.runPass()
		f.runPass()
		count := map[string]int{}
		for _, e := range f.day(core.Operator).Entries {
			var n, pid int
			if _, err := fmt.Sscanf(e.Text, "entry %d of %d begins", &n, &pid); err != nil || !strings.HasSuffix(e.Text, " ends") {
				t.Fatalf("a torn entry: %.60q … %q", e.Text, e.Text[max(0, len(e.Text)-20):])
			}
			count[fmt.Sprintf("%d of %d", n, pid)]++
			if r, err := f.ids.Find(t.Context(), f.db, e.ID); err != nil || r.Path != dayFile {
				t.Errorf("entry %s is registered as %+v: %v", e.ID, r, err)
			}
		}
		for text := range acknowledged {
			if count[text] != 1 {
				t.Fatalf("entry %s is there %d times", text, count[text])
			}
		}
		left, err := filepath.Glob(filepath.Join(dir, "Daily", ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %q, %v", left, err)
		}
		if err := os.Remove(filepath.Join(dir, dayFile)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		clear(acknowledged)
	}
}

func TestOnAFullDiskAnEntryIsRefusedAndTheOthersStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.Seed(t, filepath.Join(dir, "test.db"))
	c := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
	c.Env = append(os.Environ(), writerEnv+"="+dir, fullEnv+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "refused true: the disk of the vault is full") {
		t.Fatalf("%v: %s", err, out)
	}
	f := openAgain(t, dir)
	if got, want := len(f.day(core.Operator).Entries), strings.Count(string(out), "acknowledged"); got != want || want == 0 {
		t.Errorf("%d entries, want %d", got, want)
	}
	left, err := os.ReadDir(filepath.Join(dir, "Daily"))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// run starts a writer, kills it some time after its first entry, and adds what it
// acknowledged.
func run(t *testing.T, dir string, after time.Duration, acknowledged map[string]bool) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
	c.Env = append(os.Environ(), writerEnv+"="+dir)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
		if !ok {
			t.Error(lines.Text())
			continue
		}
		if acknowledged[text] = true; len(acknowledged) == 1 {
			kill.Reset(after)
		}
	}
	_ = c.Wait()
	kill.Stop()
	if len(acknowledged) == 0 {
		t.Fatal("the writer wrote nothing")
	}
}

// What a process that was killed had written of the new content is not taken for entries.
func TestAPartOfAWriteIsRemovedAndNotRead(t *testing.T) {
	dir := t.TempDir()
	storetest.Seed(t, filepath.Join(dir, "test.db"))
	f := openAgain(t, dir)
	if _, err := f.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: "one entry"}, panel); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(filepath.Join(dir, dayFile))
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(dir, filepath.Dir(dayFile), vault.PartOf(tempOf(dayFile, was)))
	if err := os.WriteFile(part, append(was, "\n# para:aaaaaaaaaaaa 9:00 AM\n\nentry that is to"...), 0o600); err != nil {
		t.Fatal(err)
	}
	f.runPass()
	f.runPass()
	if _, err := os.Stat(part); !os.IsNotExist(err) {
		t.Errorf("the part is still there: %v", err)
	}
	if list := f.day(core.Operator).Entries; len(list) != 1 || list[0].Text != "one entry" {
		t.Errorf("%+v", list)
	}
}
