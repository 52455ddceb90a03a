package api

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/mcp"
)

// unheard is an audit log that no test reads.
type unheard struct{}

func (unheard) Called(context.Context, core.Actor, string, string) error { return nil }

// mcp returns what other agents use, without tools that do anything.
func (h *harness) mcp(door *auth.Authenticator, log *slog.Logger) http.Handler {
	s := mcp.New(mcp.Options{Authenticator: door, API: http.NotFoundHandler(), Audit: unheard{}, Files: h.vault.FS(), MayRead: func(core.Trust, int64, string) bool { return false },
		Now:  func(context.Context, int64) (time.Time, error) { return h.clock.Now(), nil },
		Bots: func() []string { return nil }, Agents: func() []mcp.Agent { return nil }, Clock: h.clock, Log: log})
	h.t.Cleanup(func() { _ = s.Close() })
	return web.Serve(log, web.WriteProblem, s.Serve)
}

// endMCP begins a session of MCP and ends it.
func (h *harness) endMCP(t *testing.T, key string) {
	t.Helper()
	begun := h.do(key, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	drain(h, begun)
	session := begun.Header.Get("Mcp-Session-Id")
	if ended := h.do(key, "DELETE", "/mcp", "", "Mcp-Session-Id", session); session == "" || ended.StatusCode != 204 {
		t.Errorf("session %q: %d", session, ended.StatusCode)
	}
}

func TestMCP_ASessionOfThePanelIsNotEnough(t *testing.T) {
	h := open(t, options{admin: true})
	res := h.do("", "POST", "/sign-in", "")
	if res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	for _, header := range [][]string{nil, {"X-CSRF-Token", "guess"}} {
		if got := h.do("", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(header, "Cookie", res.Cookies()[0].String())...); got.StatusCode != 401 && got.StatusCode != 403 {
			t.Errorf("%v: %d", header, got.StatusCode)
		}
	}
}
