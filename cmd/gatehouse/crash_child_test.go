package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A child is the program, running as a process of its own.
type child struct {
	cmd  *exec.Cmd
	log  string // file of its standard error
	from int64  // where in it its own part begins
	done chan struct{}
	err  error // of Wait, once done is closed

	once   sync.Once
	killed chan struct{} // closed once SIGKILL was sent
}

// startChild runs argv with nothing in its environment but a path, a home, a
// runtime folder and settings. It is killed when the test ends.
func startChild(t *testing.T, dir string, settings map[string]string, argv ...string) *child {
	t.Helper()
	return startLogged(t, dir, "log", settings, argv...)
}

// startLogged is startChild with a log of that name.
func startLogged(t *testing.T, dir, log string, settings map[string]string, argv ...string) *child {
	t.Helper()
	c := &child{log: filepath.Join(dir, log), done: make(chan struct{}), killed: make(chan struct{})}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if st, err := out.Stat(); err == nil {
		c.from = st.Size()
	}
	c.cmd = exec.Command(argv[0], argv[1:]...)
	c.cmd.Stderr, c.cmd.Stdout = out, out
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}
	for k, v := range settings {
		c.cmd.Env = append(c.cmd.Env, "GATEHOUSE_"+k+"="+v)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	t.Cleanup(func() {
		c.kill()
		<-c.done
	})
	return c
}

// kill ends the process as a power switch would: SIGKILL, at once. It may be
// called from anywhere, more than once.
func (c *child) kill() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		close(c.killed)
	})
}

// ended reports whether the process has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// dead reports whether SIGKILL was sent.
func (c *child) dead() bool {
	select {
	case <-c.killed:
		return true
	default:
		return false
	}
}

func (c *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
}

// gone waits until the process has ended and says by which exit code, -1 when
// a signal ended it.
func (c *child) gone(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(within):
		t.Fatalf("the gateway still runs after %v\n%s", within, c.tail())
	}
	return c.cmd.ProcessState.ExitCode()
}

// bySignal is the signal that ended the process; 0 when none did.
func (c *child) bySignal() syscall.Signal {
	if ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}

// tail is the end of its log.
func (c *child) tail() string {
	b, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// says waits until its log holds text.
func (c *child) says(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		b, err := os.ReadFile(c.log)
		if err == nil && strings.Contains(string(b[c.from:]), text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the gateway did not say %q:\n%s", text, c.tail())
		}
		time.Sleep(5 * time.Millisecond) // a file can't be waited for
	}
}

// crashDir is a temporary folder with a short path: a socket's is bounded.
func crashDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("what the test left is in ", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// settingsOf are the child's settings but for the platforms, with a model at model.
func settingsOf(vault, model, mode string) map[string]string {
	return map[string]string{
		"VAULT_PATH": vault, "ADDR": "127.0.0.1:0", "LOG_FORMAT": "json",
		"PACE": "off", "RATE_LIMIT": "off", "BUSY_MODE": mode, "DRAIN_TIMEOUT": "10s",
		"OPENAI_BASE_URL": model, "MODEL": "openai/echo",
	}
}

// tokenOf names the n-th message of a test; no other text looks like it.
func tokenOf(n int) string { return fmt.Sprintf("m%06d", n) }
