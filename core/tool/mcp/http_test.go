package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/mcp/entry"
)

type word struct {
	Text string `json:"text"`
}

// A site is an MCP server behind HTTP.
type site struct {
	*httptest.Server
	began chan struct{}
	ended chan struct{}
}

func newSite(t *testing.T, around func(http.Handler) http.Handler) *site {
	t.Helper()
	w := &site{began: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	s := sdk.NewServer(&sdk.Implementation{Name: "site", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it."}, func(_ context.Context, _ *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "long", Description: "Says much."}, func(context.Context, *sdk.CallToolRequest, word) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 40<<20)}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang", Description: "Waits."}, func(ctx context.Context, _ *sdk.CallToolRequest, _ word) (*sdk.CallToolResult, any, error) {
		w.began <- struct{}{}
		<-ctx.Done()
		w.ended <- struct{}{}
		return nil, nil, ctx.Err()
	})
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	if around != nil {
		handler = around(handler)
	}
	w.Server = httptest.NewServer(handler)
	t.Cleanup(w.Close)
	return w
}

func TestToolsOfAnHTTPServerAreOfferedAndCalled(t *testing.T) {
	var proxied, wrong atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	site := newSite(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer sesame-open-1" {
				wrong.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	h := newHouse(t, unhurried{}, nil, fmt.Sprintf(`"site": {"type": "http", "url": %q, "headers": {"Authorization": "Bearer ${NOTES_TOKEN}"}, "trust": "sandboxed"}`, site.URL))
	for _, trust := range []core.Trust{core.Sandboxed, core.Vault, core.Full} {
		turn := h.turn(t, trust, 7, "run")
		o := h.servers.Equip(t.Context(), turn, nil)
		x := find(t, o, "mcp__site__echo")
		if x.Isolated || x.Least != core.Sandboxed || !x.Effects {
			t.Errorf("%+v", x)
		}
		if _, said := do(t, turn, o, x.Name, `{"text": "hello"}`); said != "hello" {
			t.Errorf("%v: %q", trust, said)
		}
	}
	if proxied.Load() > 0 || wrong.Load() > 0 {
		t.Errorf("%d requests by a proxy, %d without the header", proxied.Load(), wrong.Load())
	}
	if got := h.servers.Health()[0]; got.Transport != entry.HTTP || got.State != mcp.Ready || got.Tools != 3 {
		t.Errorf("%+v", got)
	}
}

func TestAnHTTPServerIsNotFollowedToAnotherHost(t *testing.T) {
	var heard atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard.Add(1) }))
	defer other.Close()
	site := newSite(t, func(http.Handler) http.Handler {
		return http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
	})
	h := newHouse(t, unhurried{}, nil, fmt.Sprintf(`"site": {"url": %q, "headers": {"X-Key": "key-of-the-site"}}`, site.URL))
	_, o := h.full(t)
	if len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0].Message, "redirects to another host") || strings.Contains(o.Warnings[0].Message, "key-of-the-site") {
		t.Errorf("%v", o.Warnings)
	}
	if heard.Load() > 0 {
		t.Error("the other host was asked")
	}
}

func TestAnHTTPServerThatIsNotThereIsAWarning(t *testing.T) {
	site := newSite(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	})
	h := newHouse(t, unhurried{}, nil, fmt.Sprintf(`"site": {"url": %q}, "gone": {"url": "http://127.0.0.1:1/mcp"}`, site.URL))
	_, o := h.full(t)
	if len(o.Warnings) != 2 || !strings.Contains(o.Warnings[0].Message, "Unauthorized") || !strings.Contains(o.Warnings[1].Message, "connection refused") {
		t.Errorf("%v", o.Warnings)
	}
}

func TestACallOverHTTPEndsWithItsContextAndIsBounded(t *testing.T) {
	site := newSite(t, nil)
	h := newHouse(t, unhurried{}, nil, fmt.Sprintf(`"site": {"url": %q}`, site.URL))
	turn, o := h.full(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := try(ctx, t, turn, o, "mcp__site__hang", `{"text": ""}`)
		done <- err
	}()
	<-site.began
	cancel()
	for _, c := range []<-chan struct{}{site.ended} {
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatal("the server does not hear of it")
		}
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if r, said := do(t, turn, o, "mcp__site__long", `{"text": ""}`); !r.IsError {
		t.Errorf("%d bytes", len(said))
	}
	if _, said := do(t, turn, o, "mcp__site__echo", `{"text": "after"}`); said != "after" {
		t.Errorf("%q", said)
	}
}
