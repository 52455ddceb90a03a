package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"gatehouse/core"
)

// Time limits of every connection. Streams and answers that wait for a run
// lift the read and write limits for themselves (LongLived).
const (
	HeaderTimeout = 10 * time.Second
	ReadTimeout   = 30 * time.Second
	WriteTimeout  = 60 * time.Second
	IdleTimeout   = 120 * time.Second
	MaxHeader     = 32 << 10 // bytes
)

// ErrStopping ends the contexts of requests that outlive the server.
var ErrStopping = errors.New("the server is stopping")

// Listen listens on the TCP address addr. When another program has it, the error is
// core.Conflict and names the setting that addr comes from.
func Listen(addr, setting string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, core.Errorf(core.Conflict, "%s is taken by another program, maybe another gateway: stop it, or set %s to another address", addr, setting)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// ServerOptions for NewServer; the zero value works.
type ServerOptions struct {
	Log   *slog.Logger  // nil: none
	Grace time.Duration // how long open requests may take to finish at the stop; 0: 5 s
	// ReadTimeout and WriteTimeout; 0: the constants above.
	ReadTimeout, WriteTimeout time.Duration
}

// A Server serves one listener until its context ends.
type Server struct {
	srv   *http.Server
	grace time.Duration
	log   *slog.Logger

	stop     context.Context // ends when the server begins to stop
	stopping context.CancelFunc
	base     context.Context // of all requests and streams; ends when what is left is cut

	mu      sync.Mutex
	streams int           // on connections of their own
	over    bool          // there will be no more of them
	none    chan struct{} // closed when over and the last has ended
}

type stopKey struct{}

// Stopping returns a channel that is closed when the server that ctx's request came
// through begins to stop; outside a Server it never is.
func Stopping(ctx context.Context) <-chan struct{} {
	if s, ok := ctx.Value(stopKey{}).(*Server); ok {
		return s.stop.Done()
	}
	return nil
}

// OnStopping has f called, in a goroutine of its own, when Stopping is closed,
// unless forget was called before; forget reports whether it came in time.
func OnStopping(ctx context.Context, f func()) (forget func() bool) {
	if s, ok := ctx.Value(stopKey{}).(*Server); ok {
		return context.AfterFunc(s.stop, f)
	}
	return func() bool { return true }
}

// Lasting returns a context that does not end with the request ctx is of, and has
// nothing of it: it ends when the server cuts what is left at its stop.
func Lasting(ctx context.Context) context.Context {
	if s, ok := ctx.Value(stopKey{}).(*Server); ok {
		return s.base
	}
	return context.WithoutCancel(ctx)
}

// Outlast has the server that ctx's request came through wait for the request at its
// stop although it takes over its connection. The caller calls release once at its end.
func Outlast(ctx context.Context) (release func()) {
	if s, ok := ctx.Value(stopKey{}).(*Server); ok && s.more() {
		return s.fewer
	}
	return func() {}
}

// more counts one more stream on a connection of its own; false when the
// server waits for the last.
func (s *Server) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.streams++
	return true
}

func (s *Server) fewer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams--; s.over && s.streams == 0 {
		close(s.none)
	}
}

// last returns a channel that is closed when the last stream has ended.
func (s *Server) last() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		if s.over = true; s.streams == 0 {
			close(s.none)
		}
	}
	return s.none
}

// NewServer makes a server for h.
func NewServer(h http.Handler, o ServerOptions) *Server {
	s := &Server{grace: o.Grace, log: o.Log, none: make(chan struct{})}
	s.stop, s.stopping = context.WithCancel(context.Background())
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.grace == 0 {
		s.grace = 5 * time.Second
	}
	s.srv = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: HeaderTimeout,
		ReadTimeout:       ReadTimeout,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if o.ReadTimeout > 0 {
		s.srv.ReadTimeout, s.srv.ReadHeaderTimeout = o.ReadTimeout, min(o.ReadTimeout, HeaderTimeout)
	}
	if o.WriteTimeout > 0 {
		s.srv.WriteTimeout = o.WriteTimeout
	}
	return s
}

// Run serves l until ctx ends, then takes no more, ends endless streams at
// once, gives the others the grace period, cuts what is left, and returns when
// every handler is done (or a second later). It closes l. Call it once.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	base, cut := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), stopKey{}, s))
	defer cut(ErrStopping)
	defer s.stopping()
	s.base = base
	s.srv.BaseContext = func(net.Listener) context.Context { return base }
	failed := make(chan error, 1)
	go func() { failed <- s.srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.stopping()
	soft, done := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	err := s.end(soft)
	done()
	if err == nil {
		return nil
	}
	cut(ErrStopping)
	hard, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if err := s.end(hard); err != nil {
		s.log.Warn("requests were cut off", "err", err)
		_ = s.srv.Close()
	}
	return nil
}

// end waits for all requests, and then for all streams.
func (s *Server) end(ctx context.Context) error {
	if err := s.srv.Shutdown(ctx); err != nil {
		return err
	}
	select {
	case <-s.last():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
