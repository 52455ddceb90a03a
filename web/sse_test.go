package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core/coretest"
)

// serve runs h on a loopback listener until the test ends; stop ends it earlier
// and waits.
func serve(t *testing.T, h http.Handler, o ServerOptions) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- NewServer(h, o).Run(ctx, l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { stop(); http.DefaultClient.CloseIdleConnections() })
	return "http://" + l.Addr().String(), stop
}

func get(t *testing.T, url string) (*http.Response, *bufio.Reader) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res, bufio.NewReader(res.Body)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return strings.TrimSuffix(s, "\n")
}

func TestAStreamSendsIdsDataAndHeartbeats(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	m := NewMetrics(prometheus.NewRegistry())
	events := make(chan string)
	url, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := OpenStream(w, r, StreamOptions{Pulse: NewPulse(clock), Metrics: m})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		for e := range events {
			if err := s.Send("run.1:1\nid: forged", []byte(e)); err != nil {
				t.Error(err)
			}
		}
	}), ServerOptions{})
	res, body := get(t, url)
	if res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("headers %v", res.Header)
	}
	if got := line(t, body) + line(t, body); got != ": open" {
		t.Errorf("the stream begins with %q", got)
	}
	if n := testutil.ToFloat64(m.streams); n != 1 {
		t.Errorf("gatehouse_sse_streams is %v, want 1", n)
	}
	events <- "{\"a\":1}"
	if got := line(t, body) + "|" + line(t, body) + "|" + line(t, body); got != `id: run.1:1id: forged|data: {"a":1}|` {
		t.Errorf("event %q", got)
	}
	events <- "one\r\ntwo"
	if got := line(t, body) + "|" + line(t, body) + "|" + line(t, body) + "|" + line(t, body); got != `id: run.1:1id: forged|data: one|data: two|` {
		t.Errorf("event of two lines %q", got)
	}
	for range 3 {
		clock.AwaitWaiters(1)
		clock.Advance(Heartbeat)
		if got := line(t, body) + line(t, body); got != ": " {
			t.Errorf("heartbeat %q", got)
		}
	}
	close(events)
	if rest, err := io.ReadAll(body); err != nil || len(rest) != 0 {
		t.Errorf("after the end: %q %v", rest, err)
	}
	if n := testutil.ToFloat64(m.streams); n != 0 {
		t.Errorf("gatehouse_sse_streams is %v after the end, want 0", n)
	}
}

func TestASlowReaderIsCutOff(t *testing.T) {
	cause := make(chan error, 1)
	url, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := OpenStream(w, r, StreamOptions{Patience: 50 * time.Millisecond})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		big := []byte(strings.Repeat("x", 1<<20))
		for s.Send("", big) == nil {
		}
		<-s.Context().Done()
		cause <- context.Cause(s.Context())
		if err := s.Send("", []byte("late")); !errors.Is(err, ErrSlowReader) {
			t.Errorf("sending to a reader that was cut off: %v", err)
		}
	}), ServerOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // and read nothing
	if err := <-cause; !errors.Is(err, ErrSlowReader) && !errors.Is(err, context.Canceled) {
		t.Errorf("cause %v", err)
	}
}

func TestAStreamOutlivesTheServersTimeLimits(t *testing.T) {
	limit := 100 * time.Millisecond
	passed := make(chan struct{})
	url, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := OpenStream(w, r, StreamOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		select { // the limits are the kernel's, so this waits in real time
		case <-time.After(3 * limit):
		case <-s.Context().Done():
			t.Errorf("the stream ended: %v", context.Cause(s.Context()))
		}
		close(passed)
		_ = s.Send("", []byte("still here"))
	}), ServerOptions{ReadTimeout: limit, WriteTimeout: limit})
	_, body := get(t, url)
	<-passed
	if rest, err := io.ReadAll(body); err != nil || !strings.Contains(string(rest), "still here") {
		t.Errorf("%q %v", rest, err)
	}
}

func TestShutdownEndsEndlessStreamsAtOnceAndLetsOthersFinish(t *testing.T) {
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	var stop func()
	url, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endless := r.URL.Path == "/endless"
		s, err := OpenStream(w, r, StreamOptions{Endless: endless})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		begun <- struct{}{}
		if endless {
			<-s.Context().Done()
			if !errors.Is(context.Cause(s.Context()), ErrStopping) {
				t.Errorf("cause %v", context.Cause(s.Context()))
			}
			close(finish)
			return
		}
		<-finish // only after the endless one has ended
		if err := s.Send("", []byte("the last words")); err != nil {
			t.Errorf("a stream that was finishing was cut: %v", err)
		}
	}), ServerOptions{Grace: time.Minute})
	_, endless := get(t, url+"/endless")
	_, finishing := get(t, url+"/run")
	<-begun
	<-begun
	stop()
	if _, err := io.ReadAll(endless); err != nil {
		t.Errorf("endless: %v", err)
	}
	if rest, err := io.ReadAll(finishing); err != nil || !strings.Contains(string(rest), "the last words") {
		t.Errorf("finishing: %q %v", rest, err)
	}
}

func TestTheGracePeriodEnds(t *testing.T) {
	begun := make(chan struct{})
	url, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := OpenStream(w, r, StreamOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		close(begun)
		<-s.Context().Done()
	}), ServerOptions{Grace: 20 * time.Millisecond})
	_, _ = get(t, url)
	<-begun
	stop()
}

func TestAStreamWhoseReaderLeftBeforeItBeganLeavesNothing(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	m := NewMetrics(prometheus.NewRegistry())
	pulse := NewPulse(clock)
	here, ended := make(chan struct{}), make(chan error, 1)
	url, stop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(here)
		<-r.Context().Done()
		s, err := OpenStream(w, r, StreamOptions{Pulse: pulse, Metrics: m, Endless: true})
		if s != nil {
			t.Error("there is a stream, and nobody who reads it")
		}
		ended <- err
	}), ServerOptions{})
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-here; leave() }()
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Fatal("an answer to a reader who left")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("opened with %v", err)
	}
	stop()
	if n := testutil.ToFloat64(m.streams); n != 0 {
		t.Errorf("gatehouse_sse_streams is %v, want 0", n)
	}
	pulse.mu.Lock()
	defer pulse.mu.Unlock()
	if n := pulse.due.Len(); n != 0 {
		t.Errorf("%d heartbeats are kept for nobody", n)
	}
}
