package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
)

// The order in which the kernel is asked proves it: no getUpdates that
// confirms an update leaves before the write-ahead log, with that update's row
// in it, was put on the disk. The same look at a program that does not wait
// for the disk finds it out.
func TestStraceNothingIsConfirmedBeforeItIsOnTheDisk(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	durable := traceFences(t, program(t))
	t.Logf("durable: %d updates confirmed, %d of them too early", durable.confirmed, len(durable.early))
	if durable.confirmed < straceMessages || len(durable.early) > 0 {
		t.Errorf("of %d updates %d were confirmed; before they were on the disk: %v", straceMessages, durable.confirmed, durable.early)
	}
	lax := traceFences(t, program(t, nonDurable))
	t.Logf("not durable: %d updates confirmed, %d of them too early", lax.confirmed, len(lax.early))
	if len(lax.early) == 0 {
		t.Error("a program that does not wait for the disk passes: this test shows nothing")
	}
}

// straceMessages is how many updates are followed.
const straceMessages = 60

// needPtrace skips where a process can't be watched, and says so.
func needPtrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatal("strace is needed for this test: ", err)
	}
	if out, err := exec.Command("strace", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: processes can't be traced here: %v: %s", err, out)
	}
}

// A fenceCheck is what a trace shows.
type fenceCheck struct {
	confirmed int
	early     []string // updates confirmed before they were on the disk
}

// traceFences runs the program under strace with a light load and reads the trace.
func traceFences(t *testing.T, exe string) fenceCheck {
	t.Helper()
	r := newRig(t, exe, "queue", population{telegram: 6}, telegramtest.Options{})
	trace := filepath.Join(r.dir, "trace")
	c := startChild(t, r.dir, r.settings(),
		"strace", "-f", "-y", "-s", "6000", "-o", trace, "-e", "trace=write,writev,sendto,pwrite64,pwritev,fsync,fdatasync", exe, "serve")
	r.child = c
	c.says(t, `"serving"`)
	pid := onlyChild(t, c.cmd.Process.Pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // strace's death would leave it running
	updates := map[string]int64{}
	for i := range straceMessages + 1 {
		if i == 0 {
			r.post(0)
			r.answered() // now the next id is known
			continue
		}
		id := r.telegram.Bot().NextUpdateID()
		updates[r.post(i)] = id
		if i%5 == 0 {
			r.answered()
		}
	}
	r.post(0)
	r.answered()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.gone(t, patience); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.tail())
	}
	return readTrace(t, trace, updates)
}

func onlyChild(t *testing.T, parent int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatalf("children of %d: %q", parent, b)
	}
	return pid
}

var (
	traceOffset = regexp.MustCompile(`/getUpdates HTTP/1\.1.*[&"n]offset=([0-9]+)`)
	traceSync   = regexp.MustCompile(`^([0-9]+) +(?:fsync|fdatasync)\([0-9]+<[^>]*sessions\.db-wal>(.*)$`)
	traceResume = regexp.MustCompile(`^([0-9]+) +<\.\.\. (?:fsync|fdatasync) resumed>`)
	traceWAL    = regexp.MustCompile(`^[0-9]+ +pwrite(?:64|v)\([0-9]+<[^>]*sessions\.db-wal>`)
)

// readTrace goes through the trace in order. An update's row is written to the
// log (its text is in the page), then a sync of the log begins and ends, and
// only then may the poll that confirms it begin. strace stops each thread at
// each of these, so that the order of lines is the order of causes.
func readTrace(t *testing.T, name string, updates map[string]int64) fenceCheck {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	written := map[string]bool{}            // in the log
	syncing := map[string]map[string]bool{} // by thread: what its sync under way will have put on the disk
	durable := map[string]bool{}
	asked := map[string]bool{} // confirmed
	var check fenceCheck
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	syncs := 0
	for lines.Scan() {
		line := lines.Text()
		switch {
		case traceWAL.MatchString(line):
			for _, token := range crashToken.FindAllString(line, -1) {
				written[token] = true
			}
		case traceSync.MatchString(line):
			m := traceSync.FindStringSubmatch(line)
			covered := map[string]bool{}
			for token := range written {
				covered[token] = true
			}
			if strings.Contains(m[2], "unfinished") {
				syncing[m[1]] = covered
				continue
			}
			durable = covered
			syncs++
		case traceResume.MatchString(line):
			m := traceResume.FindStringSubmatch(line)
			for token := range syncing[m[1]] {
				durable[token] = true
			}
			delete(syncing, m[1])
			syncs++
		case strings.Contains(line, "/getUpdates HTTP/1.1"):
			m := traceOffset.FindStringSubmatch(line)
			if m == nil {
				continue // the first poll has no offset
			}
			offset, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			for token, id := range updates {
				if id >= offset || asked[token] {
					continue
				}
				asked[token] = true
				check.confirmed++
				if !durable[token] {
					check.early = append(check.early, token)
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d syncs of the write-ahead log", syncs)
	for token := range updates {
		if !written[token] {
			t.Errorf("update %s was never seen in the write-ahead log: the trace is not read rightly", token)
		}
	}
	return check
}
