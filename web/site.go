package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"gatehouse/core"
)

// SiteOptions for NewSite. The zero value is a site for loopback names only.
type SiteOptions struct {
	Clock core.Clock   // nil: the system's
	Log   *slog.Logger // nil: none
	// Hosts are the names, with or without port, that the server answers to
	// in addition to the loopback names. A name without a port means every port.
	Hosts []string
	// Origins ("https://app.example.org") may call the API from a browser.
	Origins []string
	// Proxies are the peers whose forwarded headers count.
	Proxies []netip.Prefix
}

// A Site is the checks before every route: see the package comment for the order.
type Site struct {
	clock   core.Clock
	log     *slog.Logger
	hosts   map[string]bool // as configured; fixed
	origins map[string]bool // as configured; fixed
	proxies []netip.Prefix
	cross   *http.CrossOriginProtection
}

// NewSite checks the options; an origin that is none is an Invalid error.
func NewSite(o SiteOptions) (*Site, error) {
	s := &Site{clock: o.Clock, log: o.Log, hosts: map[string]bool{}, origins: map[string]bool{}, proxies: o.Proxies,
		cross: http.NewCrossOriginProtection()}
	if s.clock == nil {
		s.clock = core.System{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, h := range o.Hosts {
		if h = strings.ToLower(strings.TrimSpace(h)); h == "" || strings.ContainsAny(h, "/*@ ") {
			return nil, core.Errorf(core.Invalid, "allowed host %q: write a name or name:port, as in gateway.example.org", h)
		}
		s.hosts[h] = true
	}
	for _, origin := range o.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return nil, core.Errorf(core.Invalid, "CORS origin %q: write scheme and host, as in https://app.example.org", origin)
		}
		s.origins[strings.ToLower(origin)] = true
	}
	return s, nil
}

// Wrap returns next with every check before it.
func (s *Site) Wrap(next http.Handler) http.Handler {
	h := recovered(s.log, s.guard(next))
	h = logged(s.log, s.clock, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, host := s.caller(r)
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
		r.Host = host // what the client typed; handlers and checks see only this
		secure(w.Header(), c)
		w.Header().Set("X-Request-Id", c.ID)
		h.ServeHTTP(w, r)
	})
}

// secure sets the headers that every answer has. The policy allows nothing
// inline and nothing from elsewhere.
func secure(h http.Header, c Caller) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", noMicrophone)
	if c.HTTPS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

const noMicrophone = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"

// AllowMicrophone lets the page that h is the head of use the microphone.
func AllowMicrophone(h http.Header) {
	h.Set("Permissions-Policy", strings.Replace(noMicrophone, "microphone=()", "microphone=(self)", 1))
}

// guard refuses foreign hosts and foreign origins, and answers CORS.
func (s *Site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.answersTo(r.Host) {
			WriteProblem(w, r, Refuse(Misdirected, "this server does not answer for the host in the request"))
			return
		}
		program := forPrograms(r.URL.Path)
		origin := r.Header.Get("Origin")
		allowed := program && s.origins[strings.ToLower(origin)]
		if program && len(s.origins) > 0 {
			w.Header().Add("Vary", "Origin")
		}
		if allowed {
			cors(w.Header(), origin)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if !allowed && s.foreign(r, program) {
			WriteProblem(w, r, Refuse(ForeignOrigin, "a page of another origin made this request"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// forPrograms reports whether path belongs to the API rather than to pages.
func forPrograms(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/") || path == "/openapi.json" || path == "/mcp"
}

// answersTo reports whether host is a loopback name or configured. A page that
// rebinds its own name to our address still sends its own name here.
func (s *Site) answersTo(host string) bool {
	host = strings.ToLower(host)
	name := hostname(host)
	if name == "" || strings.ContainsAny(host, "/@,") {
		return false
	}
	return loopbackHost(name) || s.hosts[host] || s.hosts[name]
}

// foreign reports whether a page of another origin made the request, unsafe or
// not. CrossOriginProtection judges unsafe methods; reading and streaming are
// judged here by the same headers. Only a user's click on a link to a page
// may come from elsewhere.
func (s *Site) foreign(r *http.Request, program bool) bool {
	if s.cross.Check(r) != nil {
		return true
	}
	if o := r.Header.Get("Origin"); o != "" && !sameOrigin(o, r.Host) {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	click := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return program || !click
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func cors(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-API-Key, Idempotency-Key, If-Match, Last-Event-ID, Prefer, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Gatehouse-Scopes")
	h.Set("Access-Control-Expose-Headers", "ETag, X-Run-Id, X-Request-Id, Location, Retry-After, Warning, Preference-Applied, Mcp-Session-Id")
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}
