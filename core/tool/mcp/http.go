package mcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"gatehouse/core/tool/mcp/entry"
	"gatehouse/core/tool/mcp/program"
)

// client speaks to one HTTP server, directly: no proxy and no other setting of
// the environment takes part. The headers of its entry go to its own host
// alone, and redirects to another are refused.
func client(s *entry.Server) (c *http.Client, closeIdle func()) {
	t := &http.Transport{
		Proxy:               nil,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, MaxConnsPerHost: 32,
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}
	c = &http.Client{Transport: headers{t, s.Headers}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
			return errors.New("the server redirects to another host, which is not followed")
		}
		if len(via) >= 5 {
			return errors.New("the server redirects again and again")
		}
		return nil
	}}
	return c, t.CloseIdleConnections
}

// headers adds those of the entry, and bounds what comes back.
type headers struct {
	next http.RoundTripper
	add  map[string]string
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.add {
		if http.CanonicalHeaderKey(name) == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	res, err := h.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &bounded{ReadCloser: res.Body, left: maxStream}
	return res, nil
}

// maxStream bounds one response, in bytes: an event stream may carry several messages.
const maxStream = 4 * program.MaxMessage

// bounded fails once more was read than it may hold.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server sent more than %d MiB in one answer", maxStream>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
