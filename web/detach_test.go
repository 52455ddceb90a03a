package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// logging is h behind a Site that logs into the buffer it returns.
func logging(t *testing.T, h http.Handler) (http.Handler, *coretest.Log) {
	t.Helper()
	log := &coretest.Log{}
	s, err := NewSite(SiteOptions{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s.Wrap(h), log
}

// A stream on a connection of its own is for its reader what any other is: the
// same headers, the same bytes, and an end.
func TestDetachedStream_ReadsLikeAnyOther(t *testing.T) {
	serving := func(own bool) http.Handler {
		write := func(s *Stream) {
			for i := range 3 {
				if err := s.Send(fmt.Sprint("r.1:", i+1), []byte(strings.Repeat("é", 1000*i))); err != nil {
					t.Error(err)
				}
			}
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if own {
				if err := RunStream(w, r, StreamOptions{}, write); err != nil {
					t.Error(err)
				}
				return
			}
			s, err := OpenStream(w, r, StreamOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			write(s)
		})
	}
	for _, version := range []string{"1.1", "1.0"} {
		var heads, bodies []string
		for _, own := range []bool{false, true} {
			h, log := logging(t, serving(own))
			url, stop := serve(t, h, ServerOptions{})
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET /x?secret=1 HTTP/%s\r\nHost: localhost\r\nConnection: close\r\n\r\n", version)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Errorf("HTTP/%s, own %v: %v", version, own, err)
			}
			res.Header.Del("Date")
			res.Header.Del("X-Request-Id")
			heads, bodies = append(heads, fmt.Sprint(res.StatusCode, res.TransferEncoding, res.Close, res.Header)), append(bodies, string(body))
			stop()
			if line := log.String(); strings.Count(line, "msg=request") != 1 || !strings.Contains(line, "path=/x status=200") || strings.Contains(line, "bytes=0") {
				t.Errorf("HTTP/%s, own %v: logged %q", version, own, line)
			}
		}
		if heads[0] != heads[1] || bodies[0] != bodies[1] || len(bodies[0]) < 6000 {
			t.Errorf("HTTP/%s:\n%s\n%s\n%d and %d bytes", version, heads[0], heads[1], len(bodies[0]), len(bodies[1]))
		}
	}
}

// own serves f on connections of their own; each end's cause is sent.
func own(t *testing.T, o ServerOptions, so StreamOptions, f func(*Stream)) (url string, stop func(), ended chan error) {
	t.Helper()
	ended = make(chan error, 16)
	url, stop = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := RunStream(w, r, so, func(s *Stream) {
			defer func() { ended <- context.Cause(s.Context()) }()
			f(s)
		})
		if err != nil {
			t.Error(err)
		}
	}), o)
	return url, stop, ended
}

func wait(s *Stream) { <-s.Context().Done() }

func TestDetachedStream_EndsWhenItsReaderDisconnects(t *testing.T) {
	url, _, ended := own(t, ServerOptions{}, StreamOptions{}, wait)
	for _, how := range []string{"closes", "sends what nobody asked for"} {
		res, body := get(t, url)
		if got := line(t, body); got != ": open" {
			t.Errorf("it begins with %q", got)
		}
		res.Body.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a reader who %s: %v", how, err)
		}
		if how == "closes" {
			continue
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", 100<<10))
		<-ended
	}
}

func TestDetachedStream_DisconnectsASlowReader(t *testing.T) {
	url, _, ended := own(t, ServerOptions{}, StreamOptions{Patience: 50 * time.Millisecond}, func(s *Stream) {
		for big := []byte(strings.Repeat("x", 1<<20)); s.Send("", big) == nil; {
		}
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // and read nothing
	if err := <-ended; !errors.Is(err, ErrSlowReader) {
		t.Errorf("cause %v", err)
	}
	if rest, err := io.ReadAll(conn); err == nil && bytes.HasSuffix(rest, []byte("\r\n0\r\n\r\n")) {
		t.Error("what was cut ends as if it were whole")
	}
}

func TestDetachedStream_EndsWithTheServer(t *testing.T) {
	url, stop, ended := own(t, ServerOptions{Grace: time.Minute}, StreamOptions{Endless: true}, wait)
	_, body := get(t, url)
	line(t, body)
	stop()
	if err := <-ended; !errors.Is(err, ErrStopping) {
		t.Errorf("an endless one: %v", err)
	}
	if _, err := io.ReadAll(body); err != nil {
		t.Errorf("it broke off: %v", err)
	}
	url, stop, ended = own(t, ServerOptions{Grace: 20 * time.Millisecond}, StreamOptions{}, wait)
	_, body = get(t, url)
	line(t, body)
	stop() // waits for the grace, and then cuts
	if err := <-ended; !errors.Is(err, ErrStopping) {
		t.Errorf("one that was cut: %v", err)
	}
}

func TestDetachedStream_PanicEndsThatStreamOnly(t *testing.T) {
	next := make(chan struct{}, 1)
	url, _, _ := own(t, ServerOptions{}, StreamOptions{}, func(s *Stream) {
		select {
		case <-next:
			panic("boom")
		case <-s.Context().Done():
		}
	})
	_, one := get(t, url)
	line(t, one)
	next <- struct{}{}
	if _, err := io.ReadAll(one); err == nil {
		t.Error("a stream that panicked ends as if it were whole")
	}
	_, two := get(t, url)
	if got := line(t, two); got != ": open" {
		t.Errorf("the next begins with %q", got)
	}
}

// One goroutine keeps the time of all streams, and is gone with the last.
func TestHeartbeatsOfManyStreamsShareOneTimer(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	pulse := NewPulse(clock)
	var mu sync.Mutex
	beats := map[int]int{}
	var leave []func()
	for i := range 5 {
		leave = append(leave, pulse.join(func() { mu.Lock(); beats[i]++; mu.Unlock() }))
		clock.AwaitWaiters(1)
		clock.Advance(time.Second)
	}
	count := func() (all []int) {
		mu.Lock()
		defer mu.Unlock()
		for i := range 5 {
			all = append(all, beats[i])
		}
		return all
	}
	for range 12 { // 5 to 17 s: the first three
		clock.Advance(time.Second)
		pulse.round()
	}
	if got := fmt.Sprint(count()); got != "[1 1 1 0 0]" {
		t.Errorf("after 17 s: %s", got)
	}
	leave[0]()
	clock.Advance(15 * time.Second)
	pulse.round()
	if got := fmt.Sprint(count()); got != "[1 2 2 1 1]" {
		t.Errorf("after 32 s: %s", got)
	}
	for _, f := range leave[1:] {
		f()
	}
}

// The caller gives back then what it took for the stream.
func TestDetachedStream_ReaderWhoResetBeforeItBeganIsAnError(t *testing.T) {
	here, opened := make(chan struct{}), make(chan error, 1)
	var log coretest.Log
	h := Serve(slog.New(slog.NewTextHandler(&log, nil)), WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
		close(here)
		<-r.Context().Done()
		err := RunStream(w, r, StreamOptions{}, func(*Stream) { t.Error("a stream without a reader") })
		opened <- err
		return err
	})
	url, stop := serve(t, h, ServerOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+strings.TrimPrefix(url, "http://")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-here
	if err := errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close()); err != nil { // a reset, not an end
		t.Fatal(err)
	}
	if err := <-opened; !errors.Is(err, ErrSlowReader) {
		t.Errorf("opened with %v", err)
	}
	stop()
	if strings.Contains(log.String(), "ERROR") {
		t.Errorf("a client that left is reported as a fault: %s", log.String())
	}
}
