package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serving is a server with these limits on loopback.
func serving(t *testing.T, o ServerOptions) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	go func() { done <- NewServer(h, o).Run(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr()
}

// TestAClientThatSendsItsHeadersSlowlyIsCutOff, and so is one that sends its
// body slowly: neither holds a connection for longer than the limit.
func TestAClientThatSendsItsHeadersSlowlyIsCutOff(t *testing.T) {
	addr := serving(t, ServerOptions{ReadTimeout: 50 * time.Millisecond})
	for name, begun := range map[string]string{
		"nothing": "", "headers": "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "body": "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nten bytes!",
	} {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, begun); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: the connection was not closed: %v", name, err)
		}
		c.Close()
	}
}

func TestHeadersOverTheirBoundAreRefused(t *testing.T) {
	addr := serving(t, ServerOptions{})
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Big: "+strings.Repeat("x", 2*MaxHeader)+"\r\n\r\n") // it may be closed under us
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(res.Status)
	}
}
