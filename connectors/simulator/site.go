package simulator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
)

// A Plan is what a Site is made of.
type Plan struct {
	Platform http.Handler
	Clock    core.Clock
	// Hangup ends the connections that HTTP has handed over, such as websockets,
	// when the site goes down or closes; nil: there are none.
	Hangup    func()
	StateFile string // "" keeps nothing between runs
	// Snapshot is the state as Load reads it; clean in the last one of a run.
	Snapshot func(clean bool) ([]byte, error)
}

// A Site is where a simulated platform runs: its address, its goroutines and
// its state file. Its methods may be called from any goroutine.
type Site struct {
	plan Plan
	addr string // set by Open

	mu   sync.Mutex
	ln   net.Listener
	http *http.Server
	down bool

	dirty   atomic.Bool
	saving  sync.Mutex // one writer of the state file at a time
	closing chan struct{}
	once    sync.Once
	loops   sync.WaitGroup
	active  sync.WaitGroup
}

// NewSite makes a site that is not open yet.
func NewSite(p Plan) *Site {
	if p.Hangup == nil {
		p.Hangup = func() {}
	}
	return &Site{plan: p, closing: make(chan struct{})}
}

// Open listens on the first of the addresses that can be had ("" is any free
// port) and begins to keep the state. An address that is not loopback is
// core.Invalid.
func (s *Site) Open(addrs ...string) (err error) {
	for _, addr := range addrs {
		if err = s.listen(addr); err == nil {
			s.addr = s.ln.Addr().String()
			return s.keep()
		}
	}
	return err
}

func (s *Site) listen(addr string) error {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return core.Errorf(core.Invalid, "address %q: %v", addr, err)
	}
	if !loopback(host) {
		return core.Errorf(core.Invalid, "address %q is not loopback", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	srv := &http.Server{Handler: s.plan.Platform, ReadHeaderTimeout: 10 * time.Second}
	s.ln, s.http = ln, srv
	s.loops.Go(func() { srv.Serve(ln) })
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Addr returns where it listens, "127.0.0.1:<port>".
func (s *Site) Addr() string { return s.addr }

// URL returns the base, "http://127.0.0.1:<port>": what a bot uses in place of the
// platform's own.
func (s *Site) URL() string { return "http://" + s.addr }

// Down takes the platform off the network: connections are cut, new ones
// refused. What it knows stays.
func (s *Site) Down() {
	s.mu.Lock()
	srv, ln, was := s.http, s.ln, s.down
	s.down = true
	s.mu.Unlock()
	s.plan.Hangup()
	if !was {
		ln.Close() // Serve may not have taken it yet
		srv.Close()
	}
}

// Up brings it back on the same address.
func (s *Site) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return nil
	}
	if err := s.listen(s.addr); err != nil {
		return err
	}
	s.down = false
	return nil
}

// Away reports whether the platform is down or closing.
func (s *Site) Away() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down || s.closed()
}

func (s *Site) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Close ends every exchange, stores the state and returns when no goroutine
// of the server is left. Calling it again does nothing.
func (s *Site) Close() error {
	var err error
	s.once.Do(func() {
		s.mu.Lock()
		close(s.closing)
		srv, ln := s.http, s.ln
		s.mu.Unlock()
		s.plan.Hangup()
		ln.Close()
		srv.Close()
		s.active.Wait()
		s.loops.Wait()
		err = s.save(true)
	})
	return err
}

// Closing returns closed when the site closes.
func (s *Site) Closing() <-chan struct{} { return s.closing }

// Enter counts an exchange that Close waits for until leave is called. One
// that was accepted in the moment of closing is aborted.
func (s *Site) Enter() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed() {
		panic(http.ErrAbortHandler)
	}
	s.active.Add(1)
	return s.active.Done
}

// Go runs f in a goroutine that Close waits for: f ends at Closing.
func (s *Site) Go(f func()) { s.loops.Go(f) }

// Pause waits for d, unless ctx ends or the site closes before.
func (s *Site) Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-s.plan.Clock.After(d):
	case <-ctx.Done():
	case <-s.closing:
	}
}
