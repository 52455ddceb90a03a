package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"gatehouse/cmd/gatehouse/control/bridge"
	"gatehouse/core"
)

// A gateway answers as one does: with sessions that it forgets, and streams.
type gateway struct {
	mu      sync.Mutex
	session int
	known   map[string]bool
	methods []string
	headers []http.Header
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.methods, g.headers = append(g.methods, strings.TrimSpace(r.Method+" "+m.Method)), append(g.headers, r.Header)
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case m.Method == "initialize":
		g.session++
		id = fmt.Sprint("s", g.session)
		g.known[id] = true
		w.Header().Set("Mcp-Session-Id", id)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": open\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n\n", m.ID)
	case r.Header.Get("Mcp-Protocol-Version") != "2026-07-28" && !g.known[id]:
		http.Error(w, "session not found", http.StatusNotFound)
	case m.Method == "refuse":
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"title":"Sign in or send a key","detail":"the API key is not valid"}`))
	case m.Method == "cut":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(": open\n\n"))
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"method\":\"notifications/progress\"}\n\ndata: {\"id\":%s,\"result\":%q}\n\n", m.ID, id)
	}
}

// A client is one that has started the bridge.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Scanner
	ended chan error
}

func start(t *testing.T, ctx context.Context, url string) *client {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	c := &client{t, to, bufio.NewScanner(from), make(chan error, 1)}
	go func() {
		err := bridge.Run(ctx, bridge.Options{Client: http.DefaultClient, URL: url, In: in, Out: out,
			Header: func() (http.Header, error) { return http.Header{"Authorization": {"Bearer key"}}, nil }})
		_ = out.Close()
		c.ended <- err
	}()
	t.Cleanup(func() { _ = to.Close(); _ = from.Close() })
	return c
}

func (c *client) say(message string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, message+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hears(want string) {
	c.t.Helper()
	if !c.out.Scan() || !strings.Contains(c.out.Text(), want) {
		c.t.Fatalf("%q, want one with %q", c.out.Text(), want)
	}
}

func TestMessagesAndTheirAnswersArePassedOn(t *testing.T) {
	g := &gateway{known: map[string]bool{}}
	site := httptest.NewServer(g)
	defer site.Close()
	c := start(t, t.Context(), site.URL)
	c.say(`{"jsonrpc":"2.0","id":"a","method":"initialize"}`)
	c.hears(`"id":"a"`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.say("")
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	c.hears("progress")
	c.hears(`{"id":2,"result":"s1"}`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"refuse"}`)
	c.hears("the API key is not valid")
	c.say(`{"jsonrpc":"2.0","id":4,"method":"cut"}`)
	c.hears(`"id":4`)
	c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"search","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	c.hears("progress")
	c.hears(`"id":5`)
	_ = c.in.Close()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	if got := strings.Join(g.methods, ", "); got != "POST initialize, POST notifications/initialized, POST tools/list, POST refuse, POST cut, POST tools/call, DELETE" {
		t.Error(got)
	}
	if h := g.headers[2]; h.Get("Authorization") != "Bearer key" || h.Get("Mcp-Session-Id") != "s1" || h.Get("Mcp-Protocol-Version") != "2025-06-18" {
		t.Errorf("%v", h)
	}
	if h := g.headers[5]; h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "search" {
		t.Errorf("%v", h)
	}
}

// After the gateway was started again, the session begins again and the client notices nothing.
func TestASessionThatTheGatewayForgotBeginsAgain(t *testing.T) {
	g := &gateway{known: map[string]bool{}}
	site := httptest.NewServer(g)
	defer site.Close()
	c := start(t, t.Context(), site.URL)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	c.hears(`"id":1`)
	g.mu.Lock()
	g.known = map[string]bool{}
	g.mu.Unlock()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	c.hears("progress")
	c.hears(`{"id":2,"result":"s2"}`)
}

func TestWithoutAGatewayCallsAreAnsweredAndNotificationsAreNot(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	site.Close()
	c := start(t, t.Context(), site.URL)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	c.hears("the gateway cannot be reached")
}

func TestTheEndOfTheContextEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := start(t, ctx, "http://127.0.0.1:1")
	cancel()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

func TestAMessageOverTheLimitIsAnError(t *testing.T) {
	c := start(t, t.Context(), "http://127.0.0.1:1")
	go func() { _, _ = io.WriteString(c.in, strings.Repeat("x", 5<<20)) }()
	if err := <-c.ended; core.KindOf(err) != core.TooLarge {
		t.Error(err)
	}
}
