package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// A Caller is the client of a request, as far as the network shows.
type Caller struct {
	ID    string     // the request's id
	Addr  netip.Addr // the client's address; behind a trusted proxy the one it forwards; invalid when unknown
	HTTPS bool       // TLS here, or at a trusted proxy
	// Local: the peer is on the loopback interface, speaks to a loopback host
	// name, and there is no proxy. It does not identify the user.
	Local bool
}

type callerKey struct{}

// From returns the Caller of a request that passed a Site; the zero Caller otherwise.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Key returns the caller's address as limits and back-off count it: IPv6 by its
// /64, since one user has that many addresses.
func (c Caller) Key() string {
	a := c.Addr.Unmap()
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// forwarding are the headers that only a proxy sends.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"}

// caller works out who calls and which host they meant. Forwarded headers
// count only when the peer is one of the trusted proxies; the client is then
// the last address in X-Forwarded-For that isn't a trusted proxy itself.
func (s *Site) caller(r *http.Request) (c Caller, host string) {
	c = Caller{ID: newRequestID(), HTTPS: r.TLS != nil}
	host = r.Host
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		c.Addr = ap.Addr().Unmap().WithZone("")
	}
	if !s.proxied(c.Addr) {
		c.Local = c.Addr.IsLoopback() && loopbackHost(hostname(host))
		for _, h := range forwarding {
			c.Local = c.Local && r.Header.Get(h) == ""
		}
		return c, host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		a, err := parseHop(hops[i])
		if err != nil {
			break
		}
		c.Addr = a
		if !s.proxied(a) {
			break
		}
	}
	if p := lastValue(r.Header, "X-Forwarded-Proto"); p != "" {
		c.HTTPS = strings.EqualFold(p, "https")
	}
	if h := lastValue(r.Header, "X-Forwarded-Host"); h != "" {
		host = h
	}
	return c, host
}

func (s *Site) proxied(a netip.Addr) bool {
	for _, p := range s.proxies {
		if a.IsValid() && p.Contains(a) {
			return true
		}
	}
	return false
}

func parseHop(hop string) (netip.Addr, error) {
	hop = strings.TrimSpace(hop)
	if ap, err := netip.ParseAddrPort(hop); err == nil {
		return ap.Addr().Unmap(), nil
	}
	a, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return a.Unmap(), err
}

// lastValue returns the value the nearest proxy appended.
func lastValue(h http.Header, name string) string {
	all := strings.Split(strings.Join(h.Values(name), ","), ",")
	return strings.TrimSpace(all[len(all)-1])
}

// hostname returns host without port, brackets and the root dot, in lower case.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// loopbackHost knows the names that always mean this machine (RFC 6761, section 6.3).
func loopbackHost(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Unmap().IsLoopback()
}
