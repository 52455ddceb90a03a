package connectors

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"gatehouse/core"
)

// MaxConnections is how many requests of one bot to its platform run at once; further
// ones wait for a connection. Platforms accept 30 to 50 requests a second of a bot, which
// 64 connections carry at an answer time of more than a second. Each takes some 45 KiB
// (its buffers and two goroutines, without TLS), and a thousand chats that are typed in
// at the same time would open hundreds.
const MaxConnections = 64

// NewTransport returns a transport for requests to a platform, which keeps at most a
// number of idle connections: HTTP/1.1 with keep-alive. It reads nothing from the
// environment, and RoundTrip follows no redirect, which would leak the token.
func NewTransport(idle int) *http.Transport {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: c}, nil
		},
		WriteBufferSize:       32 << 10, // a message leaves in one write: a crash cannot cut it
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          idle,
		MaxIdleConnsPerHost:   idle,
		MaxConnsPerHost:       MaxConnections,
		IdleConnTimeout:       30 * time.Second, // below the usual 75 s of servers: they should not close first
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// A conn notifies the Flight of its request before the first byte of it leaves: the hooks
// of httptrace come long before (GotConn) or while the request is in a buffer
// (WroteRequest).
type conn struct {
	net.Conn
	request atomic.Pointer[request] // that is written next, or was written last
}

type request struct {
	progress *Progress
	flight   core.Flight // may be nil
	begun    atomic.Bool // Writing was called
	wrote    atomic.Bool // bytes have left
	last     atomic.Bool // the buffer has all of it: one more write, and it has left
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	r := c.request.Load()
	if r == nil {
		return c.Conn.Write(b)
	}
	if r.flight != nil && !r.begun.Load() {
		if err := r.flight.Writing(); err != nil {
			r.progress.left.Store(false)
			return 0, err
		}
		r.begun.Store(true)
	}
	n, err := c.Conn.Write(b)
	switch {
	case err != nil && n == 0 && !r.wrote.Load():
		r.progress.left.Store(false)
	case err == nil:
		r.wrote.Store(true)
		if r.last.Swap(false) && r.flight != nil {
			r.flight.Written()
		}
	}
	return n, err
}

type flightKey struct{}

// WithFlight returns a context for the requests of a send: a Progress that follows one
// notifies f. A wait for a connection, its dial and its handshake come before.
func WithFlight(ctx context.Context, f core.Flight) context.Context {
	if f == nil {
		return ctx
	}
	return context.WithValue(ctx, flightKey{}, f)
}

// Progress is how far a request got. It decides whether a request without an answer
// may be repeated. The zero value is for a request that has not begun.
type Progress struct {
	left      atomic.Bool
	connected atomic.Bool // it has a connection
}

// Follow returns a request that updates p, and notifies the Flight of its context.
func (p *Progress) Follow(req *http.Request) *http.Request {
	f, _ := req.Context().Value(flightKey{}).(core.Flight)
	var current atomic.Pointer[request] // on the connection that it is written to
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { p.connected.Store(false) }, // also where a kept connection was closed
		GotConn: func(info httptrace.GotConnInfo) {
			p.connected.Store(true)
			p.left.Store(true)
			r := &request{progress: p, flight: f}
			current.Store(r)
			r.assign(info.Conn)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			p.left.Store(info.Err == nil)
			if r := current.Load(); r != nil && info.Err == nil {
				r.last.Store(true)
			}
		},
	}))
}

// assign has the writes to c be of r. It is called before any of them. Over a connection
// of another transport the request counts as written at once.
func (r *request) assign(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if own, ok := c.(*conn); ok {
		own.request.Store(r)
		return
	}
	if r.flight != nil && r.flight.Writing() != nil {
		_ = c.Close()
	}
}

// Unsent reports whether the platform cannot have received the whole request:
// there was no connection, or writing failed.
func (p *Progress) Unsent() bool { return !p.left.Load() }

// Connected reports whether the request has had a connection.
func (p *Progress) Connected() bool { return p.connected.Load() }

// TooSlow reports whether the time of ctx, the request's context, ended while the request was
// being written. A connection that is not made in time is not that.
func (p *Progress) TooSlow(ctx context.Context) bool {
	return p.connected.Load() && p.Unsent() && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// Interruption returns the context's error in err, or nil. Other causes of an
// error contain the URL, and with it the token.
func Interruption(err error) error {
	for _, c := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, c) {
			return c
		}
	}
	return nil
}
