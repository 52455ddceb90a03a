//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	container.Main()
	goleak.VerifyTestMain(m)
}

// open is the box of this machine. Where there is none, the test is skipped,
// under CI=true it fails.
func open(t testing.TB) sandbox.Box {
	t.Helper()
	box, why := sandbox.Open(sandbox.Auto, program(t))
	if box == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return box
}

// each runs a test in every back end of this machine. A missing container
// engine is skipped, with the reason.
func each(t *testing.T, test func(t *testing.T, box sandbox.Box)) {
	t.Run(sandbox.Bubblewrap, func(t *testing.T) { test(t, open(t)) })
	t.Run(sandbox.Container, func(t *testing.T) { test(t, openContainer(t)) })
}

func openContainer(t testing.TB) sandbox.Box {
	t.Helper()
	dir, err := os.MkdirTemp("", "ghc-") // short: sockets have their place below
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwx", dir).Run() // podman's storage has folders that their owner may not read
		_ = os.RemoveAll(dir)
	})
	box, why := container.Open(container.Options{Stage: program(t), Dir: dir})
	if box == nil {
		t.Skip("SKIPPED: no container back end: ", why)
	}
	t.Cleanup(func() { container.Close(box) })
	return box
}

func program(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// inside runs a shell command in box and gives what it said and how it ended.
func inside(t testing.TB, box sandbox.Box, s sandbox.Spec, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if s.Dir == "" {
		s.Dir = "/tmp"
	}
	s.Env = append(s.Env, "PATH=/usr/bin:/bin")
	cmd, err := box.Command(ctx, s, "/bin/sh", "-c", command)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Start()
	sandbox.Release(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return out.String(), err
}

func TestAProgramSeesWhatItIsGivenAndNothingElse(t *testing.T) {
	each(t, testAProgramSeesWhatItIsGivenAndNothingElse)
}

func testAProgramSeesWhatItIsGivenAndNothingElse(t *testing.T, box sandbox.Box) {
	dir := t.TempDir()
	for _, name := range []string{"rw/note", "ro/note", "rw/secret/key", "rw/hidden", "rw/fixed", "rw/secret/open/x", "other/note"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	s := sandbox.Spec{
		Writable: []string{at("rw")}, ReadOnly: []string{at("ro"), at("rw/fixed"), at("rw/secret/open")},
		Masked: []string{at("rw/secret"), at("rw/hidden")}, Dir: at("rw"), Env: []string{"A=b"},
	}
	for _, c := range []struct {
		command, want string
		fails         bool
	}{
		{"cat note ../ro/note fixed secret/open/x", "rw/notero/noterw/fixedrw/secret/open/x", false},
		{"echo new > note && cat note", "new\n", false},
		{"mkdir d && mv note d/note && cat d/note", "new\n", false},
		{"echo x > ../ro/note", "", true},
		{"echo x > fixed", "", true},
		{"rm -f fixed", "", true},
		{"mv fixed f2", "", true},
		{"ln fixed f2", "", true},
		{"cat hidden", "", true},
		{"cat secret/key", "", true},
		{"ls secret", "open\n", false},
		{"touch secret/x", "", true},
		{"cat ../other/note", "", true},
		{"ls ..", "ro\nrw\n", false},
		{"id -u; hostname; echo $HOME$A; env | sort | tr '\\n' ' '", "", false},
		{"touch /x || touch /etc/x || touch /dev/x || touch /proc/x || touch /usr/x", "", true},
		{"echo fine > /tmp/x && cat /tmp/x", "fine\n", false},
		{"ls /.gatehouse && echo x > /.gatehouse", "", true},
		{"/.gatehouse", "", true},
		{"ls /proc/self/fd | wc -l", "4\n", false}, // 0, 1, 2 and the folder itself
	} {
		out, err := inside(t, box, s, c.command)
		if (err != nil) != c.fails || c.want != "" && out != c.want {
			t.Errorf("%s: %v\n%s", c.command, err, out)
		}
	}
}

func TestALimitEndsTheProgramAndIsReported(t *testing.T) {
	each(t, testALimitEndsTheProgramAndSaysWhich)
}

func testALimitEndsTheProgramAndSaysWhich(t *testing.T, box sandbox.Box) {
	dir := t.TempDir()
	limits := sandbox.Limits{Memory: 64 << 20, Processes: 40, FileSize: 8 << 20, Disk: 64 << 20, CPU: time.Second}
	for _, c := range []struct{ command, why, without string }{
		{"perl -e '$x = \"x\" x 90_000_000; sleep 20'; sleep 20; echo through", "64 MiB of memory", "through"},
		{"for i in $(seq 100); do sleep 20 & done; wait; echo through", "40 processes", "through"},
		{"for i in $(seq 16); do head -c 8M /dev/zero > f$i; done; sync; sleep 20; echo through", "the command filled the disk by more than 64 MiB", "through"},
		{"head -c 9M /dev/zero > big && echo through", "", "through"},
		{"while :; do :; done; echo through", "", "through"},
	} {
		var mu sync.Mutex
		var why string
		gone := make(chan struct{})
		out, err := inside(t, box, sandbox.Spec{Writable: []string{dir}, Dir: dir, Limits: limits, OnGone: func() { close(gone) }, OnLimit: func(s string) {
			mu.Lock()
			defer mu.Unlock()
			why = s
		}}, c.command)
		<-gone
		mu.Lock()
		// A process that may not be started is refused by the kernel already, unless the gateway is root.
		if refused := strings.Contains(out, "fork"); strings.Contains(out, c.without) || err == nil || !strings.Contains(why, c.why) && !refused {
			t.Errorf("%s: %v, told %q\n%s", c.command, err, why, out)
		}
		mu.Unlock()
	}
}

func TestTheEndOfTheContextEndsEverythingInside(t *testing.T) {
	each(t, testTheEndOfTheContextEndsEverythingInside)
}

func testTheEndOfTheContextEndsEverythingInside(t *testing.T, box sandbox.Box) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	cmd, err := box.Command(ctx, sandbox.Spec{Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, OnGone: func() { close(gone) }},
		"/bin/sh", "-c", "setsid sleep 300 & echo begun; sleep 300")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	sandbox.Release(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("ended well")
	}
	<-gone
}

func TestAProgramThatNeverStartsLeavesNothing(t *testing.T) {
	each(t, testAProgramThatNeverStartsLeavesNothing)
}

func testAProgramThatNeverStartsLeavesNothing(t *testing.T, box sandbox.Box) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	cmd, err := box.Command(ctx, sandbox.Spec{Dir: "/tmp", OnGone: func() { close(gone) }}, "true")
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Release(cmd)
	cancel()
	<-gone // and goleak looks at the rest
}

func BenchmarkFreshShell(b *testing.B) {
	for name, open := range map[string]func(testing.TB) sandbox.Box{sandbox.Bubblewrap: open, sandbox.Container: openContainer} {
		b.Run(name, func(b *testing.B) {
			box := open(b)
			for b.Loop() {
				if out, err := inside(b, box, sandbox.Spec{}, "true"); err != nil {
					b.Fatal(err, out)
				}
			}
		})
	}
}
