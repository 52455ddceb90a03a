package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
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
	stop  chan struct{}
}

type stopKey struct{}

// Stopping is closed when the server that ctx's request came through begins to
// stop; outside a Server it never is.
func Stopping(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(stopKey{}).(chan struct{})
	return c
}

// NewServer makes a server for h.
func NewServer(h http.Handler, o ServerOptions) *Server {
	s := &Server{grace: o.Grace, log: o.Log, stop: make(chan struct{})}
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
	base, cut := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), stopKey{}, s.stop))
	defer cut(ErrStopping)
	s.srv.BaseContext = func(net.Listener) context.Context { return base }
	failed := make(chan error, 1)
	go func() { failed <- s.srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	close(s.stop)
	soft, done := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	err := s.srv.Shutdown(soft)
	done()
	if err == nil {
		return nil
	}
	cut(ErrStopping)
	hard, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if err := s.srv.Shutdown(hard); err != nil {
		s.log.Warn("requests were cut off", "err", err)
		_ = s.srv.Close()
	}
	return nil
}
