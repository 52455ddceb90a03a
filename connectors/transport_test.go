package connectors_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
)

// A journey is a Flight that keeps what it is notified of.
type journey struct {
	mu    sync.Mutex
	calls []string
	err   error  // of Writing
	first func() // called by Writing
}

func (j *journey) Writing() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, "writing")
	if j.first != nil {
		j.first()
	}
	return j.err
}

func (j *journey) Written() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, "written")
}

func (j *journey) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.calls, " ")
}

// ask makes a request of a send, with p as its progress.
func ask(ctx context.Context, rt http.RoundTripper, url string, f core.Flight, p *connectors.Progress) error {
	req, err := http.NewRequestWithContext(connectors.WithFlight(ctx, f), http.MethodPost, url, strings.NewReader(strings.Repeat("x", 9000)))
	if err != nil {
		return err
	}
	resp, err := rt.RoundTrip(p.Follow(req))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A platform of which the test sees the bytes of each connection.
func listen(t *testing.T, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}

func TestAFlightIsNotifiedBeforeTheFirstByteLeavesAndAfterTheLast(t *testing.T) {
	got := make(chan int, 10)
	addr := listen(t, func(c net.Conn) {
		b := make([]byte, 1)
		n, _ := c.Read(b)
		got <- n
	})
	rt := connectors.NewTransport(4)
	defer rt.CloseIdleConnections()
	early := 0
	j := &journey{first: func() {
		select {
		case early = <-got:
		case <-time.After(50 * time.Millisecond): // as long as this the bytes would have had
		}
	}}
	var p connectors.Progress
	if err := ask(t.Context(), rt, "http://"+addr, j, &p); err == nil {
		t.Error("it was answered")
	}
	if early != 0 {
		t.Error("bytes left before Writing had returned")
	}
	if n := <-got; n != 1 {
		t.Error("nothing arrived")
	}
	if j.String() != "writing written" || p.Unsent() {
		t.Errorf("notified: %s, unsent %v", j, p.Unsent())
	}
}

// Waiting for a connection, its dial and its handshake leave the platform without any
// of the message.
func TestNothingHasLeftAsLongAsThereIsNoConnection(t *testing.T) {
	silent := listen(t, func(c net.Conn) { // begins no handshake
		b := make([]byte, 4096)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	})
	for name, url := range map[string]string{"no handshake": "https://" + silent, "no such host": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			rt := connectors.NewTransport(4)
			defer rt.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			j := &journey{}
			var p connectors.Progress
			if err := ask(ctx, rt, url, j, &p); err == nil {
				t.Error("it was answered")
			}
			if j.String() != "" || !p.Unsent() {
				t.Errorf("notified: %s, unsent %v", j, p.Unsent())
			}
		})
	}
}

func TestWhatCannotBeRecordedDoesNotLeave(t *testing.T) {
	for _, secure := range []bool{false, true} {
		asked := 0
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
		if s.Start(); secure {
			s.Close()
			s = httptest.NewTLSServer(s.Config.Handler)
		}
		rt := connectors.NewTransport(4)
		if secure {
			rt.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
		}
		var p connectors.Progress
		for range 2 { // the second one over a connection that exists
			j := &journey{}
			if err := ask(t.Context(), rt, s.URL, j, &p); err != nil || j.String() != "writing written" {
				t.Fatal(err, j)
			}
		}
		j := &journey{err: errors.New("no record")}
		if err := ask(t.Context(), rt, s.URL, j, &p); err == nil || !p.Unsent() {
			t.Errorf("error %v, unsent %v", err, p.Unsent())
		}
		if strings.Contains(j.String(), "written") {
			t.Errorf("notified: %s", j)
		}
		rt.CloseIdleConnections()
		s.Close()
		if asked != 2 {
			t.Errorf("%d requests arrived, want 2", asked)
		}
	}
}

// The next request over the same connection is not of the send before.
func TestAFlightIsOfItsOwnRequestsAlone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	rt := connectors.NewTransport(4)
	defer rt.CloseIdleConnections()
	a, b := &journey{}, &journey{}
	for _, f := range []core.Flight{a, nil, b, nil} {
		var p connectors.Progress
		if err := ask(t.Context(), rt, s.URL, f, &p); err != nil {
			t.Fatal(err)
		}
	}
	if a.String() != "writing written" || b.String() != "writing written" {
		t.Errorf("notified: %s; %s", a, b)
	}
}

// A connector that says nothing of its progress may have sent the message as soon as it
// has it.
func TestAConnectorThatNotifiesNoFlightCountsAsWriting(t *testing.T) {
	j := &journey{}
	hub, err := connectors.NewHub(&inbox{}, connectors.HubOptions{}, &fake{name: "bot", run: well, send: func() core.Delivery {
		if j.String() != "writing" {
			t.Errorf("notified before Send: %q", j)
		}
		return core.Delivery{Outcome: core.Sent}
	}})
	if err != nil {
		t.Fatal(err)
	}
	to := core.Outgoing{Address: core.Address{Bot: "bot"}, Flight: j}
	if d := hub.Send(t.Context(), to); d.Outcome != core.Sent {
		t.Error(d)
	}
	j.err = errors.New("no record")
	if d := hub.Send(t.Context(), to); d.Outcome != core.NotSent {
		t.Error(d)
	}
}

// A thousand chats that are typed in at the same time do not open a connection each.
func TestRequestsToAPlatformShareFewConnections(t *testing.T) {
	const requests = 3 * connectors.MaxConnections
	var opened atomic.Int64
	full, arrived := make(chan struct{}), make(chan struct{}, requests)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-full
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	rt := connectors.NewTransport(connectors.MaxConnections)
	defer rt.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failed := make(chan error, requests)
	for range requests {
		go func() {
			var p connectors.Progress
			failed <- ask(ctx, rt, server.URL, nil, &p)
		}()
	}
	for range connectors.MaxConnections {
		select {
		case <-arrived:
		case <-ctx.Done():
			t.Fatalf("%d requests arrive at the same time, want %d", len(arrived), connectors.MaxConnections)
		}
	}
	close(full)
	for range requests {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if n := opened.Load(); n != connectors.MaxConnections {
		t.Errorf("%d requests opened %d connections, want %d", requests, n, connectors.MaxConnections)
	}
}
