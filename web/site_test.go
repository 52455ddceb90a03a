package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
)

func site(t *testing.T, o SiteOptions) *Site {
	t.Helper()
	s, err := NewSite(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends one request through a site whose every route answers "inside".
func ask(t *testing.T, s *Site, method, host, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "http://placeholder"+path, nil)
	r.Host, r.RemoteAddr = host, "127.0.0.1:5000"
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "RemoteAddr" {
			r.RemoteAddr = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "inside") })).ServeHTTP(w, r)
	return w.Result()
}

func TestAForeignHostIsRefusedOnEveryRouteAndMethod(t *testing.T) {
	s := site(t, SiteOptions{Hosts: []string{"Gateway.example.org", "other.example.org:8443"}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:3333": 200, "LOCALHOST.:3333": 200, "127.0.0.1:3333": 200, "127.8.8.8": 200,
		"[::1]:3333": 200, "[::1]": 200, "panel.localhost:3333": 200, "[::ffff:127.0.0.1]:1": 200,
		"gateway.example.org": 200, "GATEWAY.example.org:8080": 200, "other.example.org:8443": 200,
		"other.example.org": 421, "attacker.example": 421, "attacker.example:3333": 421, "": 421,
		"localhost.attacker.example": 421, "127.0.0.1.attacker.example": 421, "attacker.example@localhost": 421,
		"192.168.1.5:3333": 421, "localhost:3333,attacker.example": 421, "0.0.0.0:3333": 421,
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "DELETE"} {
			for _, path := range []string{"/", "/api/chat", "/api/chat/x/events", "/healthz", "/metrics", "/static/a.css"} {
				if got := ask(t, s, method, host, path).StatusCode; got != want {
					t.Errorf("%s %s with Host %q: status %d, want %d", method, path, host, got, want)
				}
			}
		}
	}
}

func TestRequestsOfForeignPagesAreRefusedForReadingToo(t *testing.T) {
	s := site(t, SiteOptions{Origins: []string{"https://app.example.org"}})
	const host = "localhost:3333"
	click := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for _, c := range []struct {
		name, method, path string
		header             []string
		want               int
	}{
		{"no browser", "GET", "/api/chat", nil, 200},
		{"no browser writes", "POST", "/api/chat", nil, 200},
		{"same origin", "GET", "/api/chat/x/events", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"typed address", "GET", "/admin", []string{"Sec-Fetch-Site", "none"}, 200},
		{"cross-site stream", "GET", "/api/chat/x/events", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"stream from another port", "GET", "/api/chat/x/events", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"origin of another port", "GET", "/api/chat/x/events", []string{"Origin", "http://localhost:8080"}, 403},
		{"foreign origin without fetch metadata", "GET", "/api/chat", []string{"Origin", "https://attacker.example"}, 403},
		{"null origin", "GET", "/api/chat", []string{"Origin", "null"}, 403},
		{"own origin", "GET", "/api/chat", []string{"Origin", "http://localhost:3333"}, 200},
		{"cross-site post", "POST", "/api/chat", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"foreign form", "POST", "/admin/login", []string{"Origin", "https://attacker.example"}, 403},
		{"click on a link to a page", "GET", "/admin", click, 200},
		{"click on a link to the API", "GET", "/api/chat", click, 403},
		{"page in a frame", "GET", "/admin", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"script element", "GET", "/static/admin.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403},
		{"configured origin reads", "GET", "/api/chat", []string{"Origin", "https://app.example.org", "Sec-Fetch-Site", "cross-site"}, 200},
		{"configured origin writes", "POST", "/api/chat", []string{"Origin", "https://app.example.org", "Sec-Fetch-Site", "cross-site"}, 200},
		{"configured origin at the panel", "POST", "/admin/login", []string{"Origin", "https://app.example.org", "Sec-Fetch-Site", "cross-site"}, 403},
		{"configured origin reads the panel", "GET", "/admin", []string{"Origin", "https://app.example.org", "Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if got := ask(t, s, c.method, host, c.path, c.header...).StatusCode; got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

func TestCORSIsAnsweredForConfiguredOriginsOnly(t *testing.T) {
	s := site(t, SiteOptions{Origins: []string{"https://app.example.org"}})
	pre := []string{"Access-Control-Request-Method", "POST"}
	ok := ask(t, s, "OPTIONS", "localhost", "/api/chat", append(pre, "Origin", "https://app.example.org")...)
	if ok.StatusCode != 204 || ok.Header.Get("Access-Control-Allow-Origin") != "https://app.example.org" ||
		!strings.Contains(ok.Header.Get("Access-Control-Allow-Headers"), "Authorization") || ok.Header.Get("Vary") != "Origin" {
		t.Errorf("preflight of a configured origin: %d %v", ok.StatusCode, ok.Header)
	}
	for name, list := range map[string]string{"If-Match": "Access-Control-Allow-Headers", "Idempotency-Key": "Access-Control-Allow-Headers", "Last-Event-ID": "Access-Control-Allow-Headers",
		"ETag": "Access-Control-Expose-Headers", "X-Run-Id": "Access-Control-Expose-Headers"} {
		if !slices.Contains(strings.Split(ok.Header.Get(list), ", "), name) {
			t.Errorf("%s does not name %s, without which a page cannot change what it has read", list, name)
		}
	}
	if ok.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("cookies of the panel must not be usable from another origin")
	}
	bad := ask(t, s, "OPTIONS", "localhost", "/api/chat", append(pre, "Origin", "https://attacker.example")...)
	if bad.StatusCode != 403 || bad.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of a foreign origin: %d %v", bad.StatusCode, bad.Header)
	}
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	s := site(t, SiteOptions{})
	for _, path := range []string{"/", "/api/chat", "/missing"} {
		h := ask(t, s, "GET", "localhost", path).Header
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for _, name := range []string{"X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy", "X-Request-Id"} {
			if h.Get(name) == "" {
				t.Errorf("%s: no %s", path, name)
			}
		}
		if h.Get("Strict-Transport-Security") != "" {
			t.Error("HSTS was sent over plain HTTP")
		}
	}
}

func TestForwardedHeadersCountOnlyFromTrustedProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		name, peer, host string
		header           []string
		want             Caller
	}{
		{"direct", "192.0.2.7:99", "localhost", nil, Caller{Addr: netip.MustParseAddr("192.0.2.7")}},
		{"a stranger claims to be local", "192.0.2.7:99", "localhost", []string{"X-Forwarded-For", "127.0.0.1"}, Caller{Addr: netip.MustParseAddr("192.0.2.7")}},
		{"a stranger claims TLS", "192.0.2.7:99", "localhost", []string{"X-Forwarded-Proto", "https"}, Caller{Addr: netip.MustParseAddr("192.0.2.7")}},
		{"loopback", "127.0.0.1:99", "localhost:3333", nil, Caller{Addr: netip.MustParseAddr("127.0.0.1"), Local: true}},
		{"loopback over IPv6", "[::1]:99", "[::1]:3333", nil, Caller{Addr: netip.MustParseAddr("::1"), Local: true}},
		{"loopback peer, public name", "127.0.0.1:99", "gw.example.org", nil, Caller{Addr: netip.MustParseAddr("127.0.0.1")}},
		{"an unknown proxy on loopback", "127.0.0.1:99", "localhost", []string{"X-Forwarded-For", "192.0.2.9"}, Caller{Addr: netip.MustParseAddr("127.0.0.1")}},
		{"trusted", "10.1.1.1:99", "localhost", []string{"X-Forwarded-For", "6.6.6.6, 192.0.2.9, 10.2.2.2", "X-Forwarded-Proto", "https"},
			Caller{Addr: netip.MustParseAddr("192.0.2.9"), HTTPS: true}},
		{"trusted, a client that lies", "10.1.1.1:99", "localhost", []string{"X-Forwarded-For", "127.0.0.1, 192.0.2.9"}, Caller{Addr: netip.MustParseAddr("192.0.2.9")}},
		{"trusted, nothing forwarded", "10.1.1.1:99", "localhost", nil, Caller{Addr: netip.MustParseAddr("10.1.1.1")}},
		{"trusted, garbage", "10.1.1.1:99", "localhost", []string{"X-Forwarded-For", "192.0.2.9, <script>"}, Caller{Addr: netip.MustParseAddr("10.1.1.1")}},
	} {
		s := site(t, SiteOptions{Proxies: proxies, Hosts: []string{"gw.example.org"}})
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.RemoteAddr = c.host, c.peer
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		var got Caller
		s.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = From(r.Context()) })).ServeHTTP(httptest.NewRecorder(), r)
		got.ID = ""
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestATrustedProxysHostIsChecked(t *testing.T) {
	s := site(t, SiteOptions{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Hosts: []string{"gw.example.org"}})
	for forwarded, want := range map[string]int{"gw.example.org": 200, "attacker.example": 421} {
		if got := ask(t, s, "GET", "127.0.0.1:3333", "/", "RemoteAddr", "10.0.0.1:1", "X-Forwarded-Host", forwarded).StatusCode; got != want {
			t.Errorf("forwarded host %s: %d, want %d", forwarded, got, want)
		}
	}
	if got := ask(t, s, "GET", "attacker.example", "/", "RemoteAddr", "192.0.2.1:1", "X-Forwarded-Host", "gw.example.org").StatusCode; got != 421 {
		t.Errorf("a stranger's X-Forwarded-Host replaced the Host: %d", got)
	}
}

func TestCallerKeyGroupsIPv6ByNetwork(t *testing.T) {
	key := func(a string) string { return Caller{Addr: netip.MustParseAddr(a)}.Key() }
	if key("2001:db8::1") != key("2001:db8::ffff") || key("2001:db8::1") == key("2001:db8:0:1::1") {
		t.Error("IPv6 is counted by /64")
	}
	if key("192.0.2.1") == key("192.0.2.2") || key("::ffff:192.0.2.1") != key("192.0.2.1") {
		t.Error("IPv4 is counted by address")
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for _, o := range []SiteOptions{
		{Hosts: []string{"*"}}, {Hosts: []string{""}}, {Hosts: []string{"https://a.example"}},
		{Origins: []string{"a.example"}}, {Origins: []string{"*"}}, {Origins: []string{"https://a.example/path"}},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			if _, err := NewSite(o); core.KindOf(err) != core.Invalid {
				t.Errorf("it was accepted: %v", err)
			}
		})
	}
}

func TestErrorsBecomeOneAnswer(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, c := range []struct {
		err    error
		status int
		slug   string
		detail string
	}{
		{core.Errorf(core.Invalid, "no such level"), 400, "invalid-request", "no such level"},
		{core.Errorf(core.Denied, "not yours"), 403, "forbidden", "not yours"},
		{fmt.Errorf("list: %w", core.Errorf(core.NotFound, "gone")), 404, "not-found", "gone"},
		{core.Errorf(core.Conflict, "first"), 409, "conflict", "first"},
		{core.Errorf(core.TooLarge, "big"), 413, "too-large", "big"},
		{core.Errorf(core.Busy, "later"), 503, "unavailable", "later"},
		{errors.New("database password is hunter2"), 500, "internal", "internal error"},
		{&http.MaxBytesError{Limit: 10}, 413, "too-large", "the body is over 10 bytes"},
		{&Problem{Fault: TooManyRequests, RetryAfter: 1500 * time.Millisecond}, 429, "too-many-requests", ""},
	} {
		log.Reset()
		w := httptest.NewRecorder()
		Serve(logger, WriteProblem, func(http.ResponseWriter, *http.Request) error { return c.err }).ServeHTTP(w, httptest.NewRequest("GET", "/x?secret=1", nil))
		var body struct {
			Type, Title, Detail string
			Status              int
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if w.Code != c.status || body.Status != c.status || body.Type != "/docs/problems/"+c.slug || body.Detail != c.detail || body.Title == "" {
			t.Errorf("%v: %d %+v", c.err, w.Code, body)
		}
		if w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v: content type %s", c.err, w.Header().Get("Content-Type"))
		}
		if c.status == 429 && w.Header().Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q, want whole seconds rounded up", w.Header().Get("Retry-After"))
		}
		if logged := strings.Contains(log.String(), "request failed"); logged != (c.status == 500 || c.status == 503) {
			t.Errorf("%v: logged %v", c.err, logged)
		}
		if strings.Contains(log.String(), "secret") {
			t.Errorf("the query is in the log: %s", log.String())
		}
	}
}

func TestSlugsAreUniqueAndComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Faults() {
		if seen[f.Slug] || f.Title == "" || f.About == "" || f.Status < 400 {
			t.Errorf("fault %+v", f)
		}
		seen[f.Slug] = true
		if bySlug(f.Slug) != f {
			t.Errorf("%s is not found by its slug", f.Slug)
		}
	}
}

func TestAPanicIsAnsweredWith500AndTheServerLives(t *testing.T) {
	var log bytes.Buffer
	s := site(t, SiteOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			fmt.Fprint(w, "half")
		}
		panic("boom")
	}))
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	for range 2 {
		res, err := srv.Client().Get(srv.URL + "/api/x")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 500 || strings.Contains(string(body), "boom") {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "stack=") {
		t.Error("the panic is not in the log")
	}
	if res, err := srv.Client().Get(srv.URL + "/late"); err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil {
			t.Error("an answer that broke off half way looked whole")
		}
	}
}

func TestTheAccessLogHasNoQueryNoHeaderNoBody(t *testing.T) {
	var log bytes.Buffer
	clock := coretest.NewClock(time.Time{})
	s := site(t, SiteOptions{Log: slog.New(slog.NewTextHandler(&log, nil)), Clock: clock})
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		clock.Advance(25 * time.Millisecond)
		w.WriteHeader(201)
		fmt.Fprint(w, "four")
	}))
	r := httptest.NewRequest("POST", "/api/chat?token=gh_query", strings.NewReader("gh_body"))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer gh_header")
	r.Header.Set("Cookie", "gatehouse_session=gh_cookie")
	h.ServeHTTP(httptest.NewRecorder(), r)
	line := log.String()
	for _, want := range []string{"method=POST", "path=/api/chat", "status=201", "bytes=4", "took=25ms", "from=192.0.2.1", "request="} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	if strings.Contains(line, "gh_") {
		t.Errorf("a secret is in the log: %s", line)
	}
}

func TestReadJSONTakesOneValueWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		name, kind, body string
		status           int
	}{
		{"good", "application/json; charset=utf-8", `{"a":1}`, 0},
		{"no type", "", `{}`, 415},
		{"form", "application/x-www-form-urlencoded", `a=1`, 415},
		{"text, as a page without preflight could send", "text/plain", `{}`, 415},
		{"empty", "application/json", ``, 400},
		{"cut off", "application/json", `{"a":`, 400},
		{"two values", "application/json", `{} {}`, 400},
		{"rubbish behind", "application/json", `{} x`, 400},
		{"too large", "application/json", `"` + strings.Repeat("x", 100) + `"`, 413},
		{"too large behind", "application/json", `{}` + strings.Repeat(" ", 200), 413},
	} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequest("POST", "/", strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.kind)
			if chunked {
				r.ContentLength = -1
			}
			_, err := ReadJSON(httptest.NewRecorder(), r, 64)
			status := 0
			if err != nil {
				status = ProblemOf(err).Fault.Status
			}
			if status != c.status {
				t.Errorf("%s (chunked %v): %d, want %d (%v)", c.name, chunked, status, c.status, err)
			}
		}
	}
}

// The metrics' own listener asks for no key, so that no page may reach it: not
// under a name that was rebound to it, not from elsewhere.
func TestMetricsOnTheirOwnListenerAreNotForPages(t *testing.T) {
	h, err := Scraped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "figures") }), SiteOptions{Hosts: []string{"metrics.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, host string
		header       []string
		want         int
	}{
		{"GET", "127.0.0.1:9090", nil, 200}, {"GET", "[::1]:9090", nil, 200}, {"GET", "10.1.2.3:9090", nil, 200}, {"GET", "localhost:9090", nil, 200},
		{"GET", "gatehouse:9090", nil, 200}, {"HEAD", "metrics.example.org:9090", nil, 200},
		{"GET", "rebound.example:9090", nil, 421}, {"GET", "127.0.0.1.rebound.example", nil, 421}, {"GET", "", nil, 421}, {"GET", "a@127.0.0.1", nil, 421},
		{"GET", "127.0.0.1:9090", []string{"Origin", "https://elsewhere.example"}, 403}, {"GET", "127.0.0.1:9090", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"GET", "127.0.0.1:9090", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"POST", "127.0.0.1:9090", nil, 405},
	} {
		r := httptest.NewRequest(c.method, "/metrics", nil)
		r.Host = c.host
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || strings.Contains(w.Body.String(), "figures") != (c.want == 200) {
			t.Errorf("%s on %q %v: %d, want %d", c.method, c.host, c.header, w.Code, c.want)
		}
	}
}

// What there is not, and what is asked for in another way, is told in the form
// of every other refusal; a person reads words.
func TestUnknownAddressesAreProblems(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /both", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /both", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", Serve(slog.New(slog.DiscardHandler), ShowEither, Nowhere(mux)))
	h := site(t, SiteOptions{}).Wrap(mux)
	for _, c := range []struct {
		method, path, accept, allow, kind string
		want                              int
	}{
		{"GET", "/nothing", "", "", "application/problem+json", 404}, {"POST", "/healthz", "application/json", "GET", "application/problem+json", 405},
		{"DELETE", "/both", "*/*", "GET, POST", "application/problem+json", 405}, {"OPTIONS", "/healthz", "", "GET", "application/problem+json", 405},
		{"GET", "/nothing", "text/html,*/*;q=0.8", "", "text/plain; charset=utf-8", 404}, {"HEAD", "/healthz", "", "", "", 200},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = "localhost"
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || w.Header().Get("Allow") != c.allow || c.kind != "" && w.Header().Get("Content-Type") != c.kind {
			t.Errorf("%s %s: %d, Allow %q, %s", c.method, c.path, w.Code, w.Header().Get("Allow"), w.Header().Get("Content-Type"))
		}
	}
}
