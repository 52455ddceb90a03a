package client_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// slowLine listens to connections that carry so many bytes a second, in a time that passes with
// the bytes alone: what the server waits for on them is over when their time is.
type slowLine struct {
	net.Listener
	perSecond int
}

func (l slowLine) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: c, perSecond: l.perSecond, read: never, write: never}, nil
}

const never = time.Duration(-1)

type slowConn struct {
	net.Conn
	perSecond int

	mu          sync.Mutex
	read, write time.Duration // that are left; never: no limit
}

func (c *slowConn) set(left *time.Duration, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *left = never; !until.IsZero() {
		*left = max(0, time.Until(until))
	}
}

func (c *slowConn) SetReadDeadline(t time.Time) error {
	c.set(&c.read, t)
	return c.Conn.SetReadDeadline(t)
}

func (c *slowConn) SetWriteDeadline(t time.Time) error {
	c.set(&c.write, t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *slowConn) SetDeadline(t time.Time) error {
	c.set(&c.read, t)
	c.set(&c.write, t)
	return c.Conn.SetDeadline(t)
}

// carry takes the time of n bytes; false if there is not as much.
func (c *slowConn) carry(left *time.Duration, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *left == never {
		return true
	}
	*left -= time.Duration(n) * time.Second / time.Duration(c.perSecond)
	*left = max(0, *left)
	return *left > 0
}

func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.carry(&c.read, n) {
		_ = c.Conn.Close()
		return 0, os.ErrDeadlineExceeded
	}
	return n, err
}

func (c *slowConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), 16<<10)]
		if !c.carry(&c.write, len(part)) {
			_ = c.Conn.Close()
			return n, os.ErrDeadlineExceeded
		}
		var some int
		some, err = c.Conn.Write(part)
		n, p = n+some, p[some:]
	}
	return n, err
}

// slowly serves a server over a line of so many bytes a second.
func (s *server) slowly(t *testing.T, perSecond int) (url string) {
	t.Helper()
	slow := httptest.NewUnstartedServer(s.handler)
	slow.Listener = slowLine{slow.Listener, perSecond}
	slow.Start()
	t.Cleanup(slow.Close)
	return slow.URL
}

// noise writes a file of so many bytes that do not repeat.
func noise(t *testing.T, dir, name string, size int) string {
	t.Helper()
	data := make([]byte, 0, size)
	for i := 0; len(data) < size; i++ {
		sum := sha256.Sum256(fmt.Append(nil, name, i))
		data = append(data, sum[:]...)
	}
	write(t, dir, name, string(data[:size]))
	sum := sha256.Sum256(data[:size])
	return hex.EncodeToString(sum[:])
}

func sumOf(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// 4 MB at 4 KB a second are 17 minutes.
func TestOnce_ALargeFileArrivesOverASlowLine(t *testing.T) {
	s, a, b := pair(t)
	line := s.slowly(t, 4<<10)
	a.o.Server, b.o.Server = line, line
	sum := noise(t, a.dir, "film.mp4", 4<<20)
	if r := a.sync(t); r.Sent != 1 || sumOf(t, s.dir, "film.mp4") != sum {
		t.Errorf("%+v", r)
	}
	if r := b.sync(t); r.Fetched != 1 || sumOf(t, b.dir, "film.mp4") != sum {
		t.Errorf("%+v", r)
	}
}
