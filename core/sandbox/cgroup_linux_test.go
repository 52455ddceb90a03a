package sandbox

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// folder is a control group for one test, below the uppermost one. Where none can
// be made the test is skipped; make test-cgroup runs it where that works, and
// more: with controllers.
func folder(t *testing.T) string {
	t.Helper()
	_, top, err := ownGroup()
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	dir := filepath.Join(top, "test-"+strconv.Itoa(os.Getpid())+"-"+t.Name())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("SKIPPED: no control group can be made here: ", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error("a control group was left: ", err)
		}
	})
	return dir
}

// controllers is a folder with something to hand down. Only make test-cgroup has
// one: elsewhere the uppermost group is not a test's to change.
func controllers(t *testing.T) string {
	t.Helper()
	if os.Getenv("GATEHOUSE_TEST_CGROUP") == "" {
		t.Skip("SKIPPED: make test-cgroup runs this in a kernel of its own")
	}
	_, top, err := ownGroup()
	if err == nil {
		err = (&Groups{base: top}).enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder(t)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// below are the groups of programs in base.
func below(t *testing.T, base string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(base, groupPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheGatewaysOwnGroupIsFound(t *testing.T) {
	const systemd = "25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	const hybrid = "31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n40 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for name, c := range map[string]struct{ mounts, groups, own, top string }{
		"service":   {systemd, "0::/system.slice/gatehouse.service\n", "/sys/fs/cgroup/system.slice/gatehouse.service", "/sys/fs/cgroup"},
		"container": {systemd, "0::/\n", "/sys/fs/cgroup", "/sys/fs/cgroup"},
		"hybrid":    {hybrid, "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/unified/y", "/sys/fs/cgroup/unified"},
		"bound":     {"25 1 0:22 /docker/a /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/a/b\n", "/sys/fs/cgroup/b", "/sys/fs/cgroup"},
		"v1":        {"31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/x\n", "", ""},
	} {
		own, top, err := findGroup(c.mounts, c.groups)
		if own != c.own || top != c.top || (err != nil) != (c.own == "") {
			t.Errorf("%s: %q %q %v", name, own, top, err)
		}
	}
}

func TestWhyThereAreNoControlGroupsIsReported(t *testing.T) {
	plain := t.TempDir()
	for where, want := range map[string]string{
		None:                         "switched off",
		plain:                        "no control group",
		filepath.Join(plain, "gone"): "no control group",
	} {
		g, text := OpenGroups(where, quiet())
		if g != nil || !strings.HasPrefix(text, "limits of memory and processes are checked ten times a second") || !strings.Contains(text, want) {
			t.Errorf("%s: %v %s", where, g, text)
		}
	}
	box := &bubblewrap{}
	if Limited(box, nil) != Box(box) || Limited(nil, &Groups{}) != nil {
		t.Error("a box without groups is not the same box")
	}
}

func TestAProgramIsInItsGroupWithAllThatItStartsAndTheGroupGoesWithIt(t *testing.T) {
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	base := folder(t)
	box = Limited(box, &Groups{base: base, log: quiet()})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	gone := make(chan struct{})
	cmd, err := box.Command(ctx, Spec{Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, OnGone: func() { close(gone) }},
		"/bin/sh", "-c", "setsid sleep 300 & echo begun; read x; exit 7")
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	Release(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	groups := below(t, base)
	if len(groups) != 1 {
		t.Fatal(groups)
	}
	procs, err := os.ReadFile(filepath.Join(groups[0], "cgroup.procs"))
	if n := bytes.Count(procs, []byte("\n")); err != nil || n < 4 { // bwrap twice, sh, sleep
		t.Errorf("%d processes in the group, %v", n, err)
	}
	_ = in.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	<-gone
	if left := below(t, base); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTheGroupsOfADeadGatewayAreEndedAndALivingOnesStay(t *testing.T) {
	base := folder(t)
	g := &Groups{base: base, log: quiet()}
	dead, err := g.make(Limits{}.orDefaults())
	if err != nil {
		t.Fatal(err)
	}
	living, err := g.make(Limits{}.orDefaults())
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "300")
	left.SysProcAttr = dead.attr(&syscall.SysProcAttr{})
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	_ = dead.dir.Close() // as the end of its gateway does
	g.sweep()
	err = left.Wait()
	if st := left.ProcessState.Sys().(syscall.WaitStatus); !st.Signaled() || st.Signal() != syscall.SIGKILL {
		t.Errorf("what was left ended by %v", err)
	}
	if have := below(t, base); len(have) != 1 || have[0] != living.path {
		t.Errorf("after the start there are %v", have)
	}
	living.end()
}

func TestWithoutAControlGroupTheProgramIsWatchedAndThatIsLogged(t *testing.T) {
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	var log bytes.Buffer
	box = Limited(box, &Groups{base: filepath.Join(t.TempDir(), "gone"), log: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	why, gone := make(chan string, 1), make(chan struct{})
	cmd, err := box.Command(ctx, Spec{Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, Limits: Limits{Memory: 64 << 20},
		OnLimit: func(s string) { why <- s }, OnGone: func() { close(gone) }}, "/bin/sh", "-c", `perl -e '$x = "x" x 90_000_000; sleep 300'`)
	if err != nil {
		t.Fatal(err)
	}
	said(t, cmd)
	<-gone
	if !strings.Contains(log.String(), "without a control group") {
		t.Errorf("the log: %s", log.String())
	}
	select {
	case s := <-why:
		if !strings.Contains(s, "64 MiB of memory") {
			t.Error(s)
		}
	default:
		t.Error("no limit held")
	}
}

// TestTheKernelHoldsAGroup runs programs in a group without a sandbox and without
// anybody who watches.
func TestTheKernelHoldsAGroup(t *testing.T) {
	g := &Groups{base: controllers(t), log: quiet()}
	if err := g.enable(); err != nil {
		t.Fatal(err)
	}
	l := Limits{Memory: 64 << 20, Processes: 20}
	for _, c := range []struct{ command, why string }{
		{`perl -e '$x = "x" x 150_000_000; print "through"'`, "it used more than 64 MiB of memory"},
		{`for i in 1 2 3 4; do perl -e '$x = "x" x 40_000_000; sleep 300' & done; wait; echo through`, "it used more than 64 MiB of memory"},
		{`exec 2>/dev/null; i=0; while [ $i -lt 60 ]; do sleep 300 & i=$((i+1)); done; echo through`, "it had more than 20 processes and threads"},
		{`echo fine`, ""},
	} {
		one, err := g.make(l)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.command)
		var out bytes.Buffer
		cmd.Stdout = &out
		cmd.WaitDelay = time.Millisecond // what runs in the background holds the output
		cmd.SysProcAttr = one.attr(&syscall.SysProcAttr{})
		_ = cmd.Run()
		if why := one.over(l); why != c.why || (why != "") == (strings.Contains(out.String(), "fine")) || strings.Contains(out.String(), "through") {
			t.Errorf("%s: %q, %q", c.command, why, out.String())
		}
		one.kill()
		one.end()
		cancel()
	}
}

// TestADelegatedGroupIsTaken plays systemd: a group that is marked as delegated,
// with the gateway in it.
func TestADelegatedGroupIsTaken(t *testing.T) {
	base := controllers(t)
	own, _, err := ownGroup()
	if err != nil {
		t.Fatal(err)
	}
	if err := put(base, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := put(own, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
			t.Error(err)
		}
		_ = os.Remove(filepath.Join(base, leaf))
	})
	if g, text := OpenGroups(Auto, quiet()); g != nil || !strings.Contains(text, "not delegated") {
		t.Fatal(text)
	}
	if err := unix.Setxattr(base, "trusted.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	g, text := OpenGroups(Auto, quiet())
	if g == nil || !strings.Contains(text, "the kernel holds memory, processes, processor time of each program") {
		t.Fatal(text)
	}
	if now, _, _ := ownGroup(); now != filepath.Join(base, leaf) {
		t.Errorf("the gateway is in %s", now)
	}
	again, text := OpenGroups(Auto, quiet()) // as after a start anew in the same place
	if again == nil || again.base != base {
		t.Error(text)
	}
	box, b := probe(self(t))
	if box == nil {
		t.Fatal(b.Text)
	}
	limitsOf(t, Limited(box, g), base)
}

// limitsOf shows that a box's programs have the limits of their spec.
func limitsOf(t *testing.T, box Box, base string) {
	t.Helper()
	for _, c := range []struct{ command, why string }{
		{`perl -e '$x = "x" x 200_000_000; sleep 300'`, "it used more than 64 MiB of memory"},
		{`while :; do sleep 300 & done`, "it had more than 20 processes and threads"},
	} {
		var once sync.Once
		var mu sync.Mutex
		why, gone := "", make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd, err := box.Command(ctx, Spec{Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, Limits: Limits{Memory: 64 << 20, Processes: 20},
			OnLimit: func(s string) { mu.Lock(); defer mu.Unlock(); why = s }, OnGone: func() { once.Do(func() { close(gone) }) }}, "/bin/sh", "-c", c.command)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct{ name, want string }{
			{"memory.max", strconv.Itoa(64<<20 + ownMemory)}, {"memory.oom.group", "1"}, {"pids.max", strconv.Itoa(20 + ownThreads)}, {"cpu.max", strconv.Itoa(100000*cores()) + " 100000"},
		} {
			b, err := os.ReadFile(filepath.Join(below(t, base)[0], f.name))
			if got := strings.TrimSpace(string(b)); err != nil || got != f.want {
				t.Errorf("%s is %q, %v", f.name, got, err)
			}
		}
		said(t, cmd)
		cancel()
		<-gone
		mu.Lock()
		if why != c.why {
			t.Errorf("%s: %q", c.command, why)
		}
		mu.Unlock()
		if left := below(t, base); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}
