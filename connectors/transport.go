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

// NewTransport carries requests to a platform and keeps at most so many idle
// connections. HTTP/1.1 with keep-alive; nothing is read from the environment,
// and RoundTrip follows no redirect, which would carry the token elsewhere.
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

// Progress is how far a request got, which decides whether it may be repeated
// when no answer came. The zero value is of a request that has not begun.
type Progress struct{ left atomic.Bool }

// Follow gives a request the context by which p learns how far it gets.
func (p *Progress) Follow(req *http.Request) *http.Request {
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { p.left.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) { p.left.Store(info.Err == nil) },
	}))
}

// Unsent reports that the platform can't have the whole request: there was no
// connection, or writing to it failed.
func (p *Progress) Unsent() bool { return !p.left.Load() }

// Interruption is the context's error in err, nil for none. It is all that may
// be kept of an error's causes: others hold the URL, and with it the token.
func Interruption(err error) error {
	for _, c := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, c) {
			return c
		}
	}
	return nil
}
