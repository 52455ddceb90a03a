package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A cable stands between the gateway and the PostgreSQL server, and can be cut.
type cable struct {
	t      *testing.T
	server net.Addr

	mu    sync.Mutex
	down  bool
	mute  bool                // what the server says is lost
	pause time.Duration       // before each piece that the gateway says
	held  chan struct{}       // not nil: the server does not hear of ends, until it is closed
	conns map[net.Conn]string // and whose end it is
	work  sync.WaitGroup
}

const (
	gatewaysEnd = "the gateway's"
	serversEnd  = "the server's"
)

// overTCP returns the socket of a server for tests, and its address where it is reached
// through the listener in.
func overTCP(t *testing.T, at string, in net.Listener) (socket, through string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if !strings.HasPrefix(q.Get("host"), "/") {
		t.Skip("the server for tests has no Unix socket")
	}
	socket = filepath.Join(q.Get("host"), ".s.PGSQL.5432")
	u.User, u.Host = url.User(q.Get("user")), in.Addr().String()
	q.Del("host")
	q.Del("user")
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return socket, u.String()
}

// newCable returns a cable to the server of an address over a Unix socket, and the address
// at which the gateway reaches it.
func newCable(t *testing.T, at string) (*cable, string) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, through := overTCP(t, at, in)
	return lay(t, &net.UnixAddr{Name: socket, Net: "unix"}, in), through
}

// lay returns a cable from what comes to in to a server.
func lay(t *testing.T, server net.Addr, in net.Listener) *cable {
	l := &cable{t: t, server: server, conns: map[net.Conn]string{}}
	l.work.Go(func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			l.work.Go(func() { l.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = in.Close()
		l.cut()
		l.work.Wait()
	})
	return l
}

func (l *cable) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial(l.server.Network(), l.server.String())
	if err != nil { // the server is away
		return
	}
	defer s.Close()
	l.mu.Lock()
	down := l.down
	l.conns[c], l.conns[s] = gatewaysEnd, serversEnd
	l.mu.Unlock()
	if down {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		l.pass(c, s)
		_ = c.Close()
	})
	l.pass(s, c)
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil {
		<-held
	}
	_ = s.Close()
	back.Wait()
}

// pass carries what one end says to the other one, until either ends.
func (l *cable) pass(to, from net.Conn) {
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		l.mu.Lock()
		lost, pause := l.mute && l.conns[from] == serversEnd, l.pause
		if l.conns[from] == serversEnd {
			pause = 0
		}
		l.mu.Unlock()
		time.Sleep(pause) // the server's, as it seems
		if !lost && n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// silence loses what the server says, until all connections end at mend.
func (l *cable) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute = true
}

// slow has the server take so long for each statement.
func (l *cable) slow(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pause = pause
}

// drop ends the gateway's ends of all connections, of which the server does not hear.
func (l *cable) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
	l.t.Cleanup(func() { close(l.held) })
	for c, end := range l.conns {
		if end == gatewaysEnd {
			_ = c.Close()
		}
	}
}

// cut ends all connections, and new ones at once, until mend.
func (l *cable) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.conns {
		_ = c.Close()
	}
	clear(l.conns)
}

// mend has the cable carry everything again.
func (l *cable) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mute {
		for c := range l.conns {
			_ = c.Close()
		}
		clear(l.conns)
	}
	l.down, l.mute = false, false
}

func TestPostgres_MessagesWaitWhileTheServerIsAway(t *testing.T) {
	storetest.PostgresOnly(t, "a file is not away")
	l, at := newCable(t, storetest.Fresh(t))
	model := llmtest.New(t, llmtest.Options{Choose: func(r llmtest.Request) llmtest.Reply {
		return llmtest.Say("You wrote: ", r.Messages[len(r.Messages)-1].Content)
	}})
	w := newWorld(t, func(c *configs.Config) {
		c.DatabaseURL, c.Model, c.OpenaiBaseURL = at, fakeModel, model.URL()
		c.BusyMode, c.RateLimit, c.Activity, c.Memory = "queue", values.Rate{}, false, false
	})
	ready := func() int {
		resp, err := http.Get("http://" + w.cfg.Addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	boss := w.boss()
	first := boss.Send("begin").ID
	w.answers(boss.DM(), first)
	w.quiet()
	const messages = 5
	for outage := range 2 {
		l.cut()
		for i := range messages {
			boss.Send(fmt.Sprintf("message %d of outage %d", i, outage))
		}
		w.until("readyz says so", func() bool { return ready() == http.StatusServiceUnavailable })
		l.mend()
		w.until("readyz is fine", func() bool { return ready() == http.StatusOK })
		w.quiet()
	}
	said := w.said(boss.DM(), first)[1:]
	if len(said) != 2*messages {
		t.Errorf("%d answers to %d messages:\n%s", len(said), 2*messages, strings.Join(said, "\n"))
	}
	for i, text := range said {
		if want := fmt.Sprintf("message %d of outage %d", i%messages, i/messages); !strings.Contains(text, want) {
			t.Errorf("answer %d is %q, want the one to %q", i, text, want)
		}
	}
}

// The server still has the session that the gateway has lost, and the session the lock.
func TestPostgres_AGatewayIsNotHeldUpByItsOwnLostSession(t *testing.T) {
	storetest.PostgresOnly(t, "a file has no sessions")
	l, at := newCable(t, storetest.Fresh(t))
	w := newWorld(t, func(c *configs.Config) { c.DatabaseURL = at })
	boss := w.boss()
	l.drop()
	before := time.Now()
	first := boss.Send("How long should green tea brew?").ID
	w.answers(boss.DM(), first)
	if took := time.Since(before); took > store.LockWait {
		t.Errorf("it waited %s for its own lock", took)
	}
	w.quiet()
	select {
	case <-w.app.taken:
		t.Error("it took itself for another gateway")
	default:
	}
}
