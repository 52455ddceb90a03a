package main

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A serviceManager listens to a gateway as systemd does.
type serviceManager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(shortDir(t), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &serviceManager{t, conn}
}

// starts has a command know of the service manager, which wants a sign of life in each 300 ms.
func (m *serviceManager) starts(c *exec.Cmd) {
	c.Env = append(c.Env, "NOTIFY_SOCKET="+m.conn.LocalAddr().String(), "WATCHDOG_USEC=300000")
}

// hears waits for a message with text.
func (m *serviceManager) hears(text string) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		m.t.Fatal(err)
	}
	var all []string
	for b := make([]byte, 1000); ; {
		n, err := m.conn.Read(b)
		if err != nil {
			m.t.Fatalf("the service manager does not hear %q: %v; it heard %q", text, err, all)
		}
		if strings.Contains(string(b[:n]), text) {
			return
		}
		all = append(all, string(b[:n]))
	}
}

func TestTheServiceManagerHearsThatAGatewayStartsLivesAndStops(t *testing.T) {
	t.Parallel()
	m := newServiceManager(t)
	h := newHome(t, newSim(t))
	p := h.start(m.starts, "serve")
	m.hears("READY=1\nSTATUS=serving telegram, panel, API")
	for range 5 {
		m.hears("WATCHDOG=1")
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	m.hears("STOPPING=1")
	if code := p.end(); code != exitClean {
		t.Errorf("it ends with %d", code)
	}
}

func TestTheServiceManagerHearsThatAStandbyWaitsAndThenServes(t *testing.T) {
	t.Parallel()
	m := newServiceManager(t)
	h := newHome(t, nil)
	first := h.serve(nil)
	h.start(m.starts, "serve", "--standby")
	m.hears("READY=1\nSTATUS=standing by")
	m.hears("WATCHDOG=1")
	_ = first.cmd.Process.Kill()
	m.hears("READY=1\nSTATUS=serving panel, API")
	m.hears("WATCHDOG=1")
}

// systemd starts no service again that ends with the exit code of a wrong configuration, which
// is also that of a Go program that panics.
func TestAGatewayThatCrashesDoesNotEndAsOneWithAWrongConfiguration(t *testing.T) {
	t.Parallel()
	p := newHome(t, nil).serve(nil)
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // to the Go runtime as a panic: the stacks, and the end
	p.end()
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() {
		t.Errorf("it ended with exit code %d, not by a signal", p.cmd.ProcessState.ExitCode())
	}
	if !strings.Contains(p.err.String(), "goroutine ") {
		t.Error("it did not print where it was")
	}
}
