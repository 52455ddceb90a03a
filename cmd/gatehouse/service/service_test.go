package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// listen returns the socket of a service manager that wants a sign of life in each second.
func listen(t *testing.T) *net.UnixConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", conn.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "30000")
	return conn
}

func TestAProgramThatHangsGivesNoSignOfLife(t *testing.T) {
	conn := listen(t)
	m := Find(slog.New(slog.DiscardHandler))
	entered, release := make(chan struct{}), make(chan struct{})
	calls := 0
	m.Check(func(context.Context) {
		if calls++; calls == 2 {
			close(entered)
			<-release
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Live(ctx)
	}()
	<-entered
	b := make([]byte, 100)
	if n, err := conn.Read(b); err != nil || string(b[:n]) != "WATCHDOG=1" {
		t.Fatalf("before it hangs: %q %v", b[:n], err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil { // ten times what it waits
		t.Fatal(err)
	}
	if n, err := conn.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("while it hangs: %q %v", b[:n], err)
	}
	close(release)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(b); err != nil || string(b[:n]) != "WATCHDOG=1" {
		t.Errorf("when it goes on: %q %v", b[:n], err)
	}
	stop()
	<-done
}

func TestWithoutAServiceManagerNothingIsSaid(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	m := Find(slog.New(slog.DiscardHandler))
	m.Serving("serving")
	m.Live(t.Context()) // returns
	(*Manager)(nil).Stopping()
}
