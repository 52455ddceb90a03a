package web

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// serving is a server with these limits on loopback.
func serving(t *testing.T, o ServerOptions) net.Addr {
	t.Helper()
	return servingWith(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), o)
}

func servingWith(t *testing.T, h http.Handler, o ServerOptions) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- NewServer(h, o).Run(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr()
}

// TestSlowHeadersAreRefused, and so is one that sends its
// body slowly: neither holds a connection for longer than the limit.
func TestSlowHeadersAreRefused(t *testing.T) {
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
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: the connection was not closed: %v", name, err)
		}
		c.Close()
	}
}

func TestHeadersOverTheLimitAreRefused(t *testing.T) {
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

// Whoever sends a body too slowly is told so: it is no fault of ours, and the log
// says nothing of one.
func TestSlowBodyIsARequestTimeout(t *testing.T) {
	log := &coretest.Log{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	h := Serve(logger, WriteProblem, func(w http.ResponseWriter, r *http.Request) error { _, err := ReadJSON(w, r, 1000); return err })
	addr := servingWith(t, h, ServerOptions{ReadTimeout: 50 * time.Millisecond})
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"message\":"); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Minute))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 408 || !strings.Contains(string(body), "/docs/problems/request-timeout") {
		t.Errorf("%s: %s", res.Status, body)
	}
	if text := log.String(); strings.Contains(text, "request failed") {
		t.Errorf("the log: %s", text)
	}
}
