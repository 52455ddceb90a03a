// Package wiretest is what the fakes of model providers share: a server on
// loopback that is given its replies beforehand, keeps what it was asked, and
// sends a reply whole or broken in the ways that networks and servers break
// them. What is refused and how an answer is written is each fake's own. Next to
// it is what the tests of the clients ask with.
package wiretest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
)

const maxLog = 1000 // requests kept; older ones are dropped

// A Server takes its Replies from a script and keeps the Requests. Listen makes
// it ready; all other methods are then safe for use by many goroutines.
type Server[Reply, Request any] struct {
	name, url string
	clock     core.Clock
	http      *http.Server
	closing   chan struct{}
	once      sync.Once

	mu      sync.Mutex
	script  []Reply
	log     []Request // the last maxLog
	total   int
	changed chan struct{} // closed and renewed with each logged request
}

// Listen has h answer on a free port of 127.0.0.1; Close ends it. The clock is
// for pauses, nil is the system's. Errors begin with name.
func (s *Server[Reply, Request]) Listen(name string, h http.Handler, clock core.Clock) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if clock == nil {
		clock = core.System{}
	}
	s.name, s.url, s.clock = name, "http://"+l.Addr().String(), clock
	s.closing, s.changed = make(chan struct{}), make(chan struct{})
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(l) // ends with Close
	return nil
}

// URL returns the server's address without a path.
func (s *Server[Reply, Request]) URL() string { return s.url }

// Close ends all replies, hanging ones too, and frees the port.
func (s *Server[Reply, Request]) Close() {
	s.once.Do(func() {
		close(s.closing)
		s.http.Close()
	})
}

// Script appends replies; each well-formed request for an answer takes one, in order.
func (s *Server[Reply, Request]) Script(replies ...Reply) {
	s.mu.Lock()
	s.script = append(s.script, replies...)
	s.mu.Unlock()
}

// Next takes the next reply of the script; usual is for its end, and for a
// reply without content.
func (s *Server[Reply, Request]) Next(usual Reply, saysNothing func(Reply) bool) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := usual
	if len(s.script) > 0 {
		r, s.script = s.script[0], s.script[1:]
	}
	if saysNothing(r) {
		return usual
	}
	return r
}

// Scripted reports whether there are replies left in the script.
func (s *Server[Reply, Request]) Scripted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script) > 0
}

// Requests returns the last 1,000 requests, oldest first.
func (s *Server[Reply, Request]) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Total counts all requests since the start.
func (s *Server[Reply, Request]) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Await returns when n requests have come in all, or ctx ends.
func (s *Server[Reply, Request]) Await(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, changed := s.total, s.changed
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d requests: %w", s.name, have, n, ctx.Err())
		}
	}
}

// Record keeps r and is its number, from 1.
func (s *Server[Reply, Request]) Record(r Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.log) >= maxLog {
		s.log = slices.Delete(s.log, 0, 1)
	}
	s.log = append(s.log, r)
	s.total++
	close(s.changed)
	s.changed = make(chan struct{})
	return s.total
}

// hang blocks until the client is gone or the server closes.
func (s *Server[Reply, Request]) hang(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return errors.New("the server is closing")
	}
}
