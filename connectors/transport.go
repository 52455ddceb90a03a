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
)

// NewTransport returns a transport for requests to a platform with at most a number
// of idle connections: HTTP/1.1 with keep-alive. It reads nothing from the
// environment, and RoundTrip follows no redirect, which would leak the token.
func NewTransport(idle int) *http.Transport {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:           dial.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          idle,
		MaxIdleConnsPerHost:   idle,
		IdleConnTimeout:       30 * time.Second, // below the usual 75 s of servers: they should not close first
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// Progress is how far a request got. It decides whether a request without an answer
// may be repeated. The zero value is for a request that has not begun.
type Progress struct{ left atomic.Bool }

// Follow returns a context for a request that updates p.
func (p *Progress) Follow(req *http.Request) *http.Request {
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { p.left.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) { p.left.Store(info.Err == nil) },
	}))
}

// Unsent reports whether the platform cannot have received the whole request:
// there was no connection, or writing failed.
func (p *Progress) Unsent() bool { return !p.left.Load() }

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
