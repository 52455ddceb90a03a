package connectorstest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Dial has first make the first connection of a transport that has made none yet, with the
// address that is asked for; further ones are as usual.
func Dial(t *http.Transport, first func(ctx context.Context, network, address string) (net.Conn, error)) {
	usual := t.DialContext
	var made atomic.Bool
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if made.Swap(true) {
			return usual(ctx, network, address)
		}
		return first(ctx, network, address)
	}
}

// NoAnswer is for Dial: the lookup of the name ends as it does when the network is away.
func NoAnswer(_ context.Context, _, address string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{UnwrapErr: context.DeadlineExceeded, Err: "i/o timeout", Name: address, IsTimeout: true}}
}

// NoConnection is for Dial: it is not made before ctx ends.
func NoConnection(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Stalled is for Dial: a connection that takes nothing.
func Stalled(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &stalled{Conn: c, closed: make(chan struct{})}, nil
}

type stalled struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *stalled) Write([]byte) (int, error) {
	<-c.closed
	return 0, net.ErrClosed
}

func (c *stalled) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
