package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/web/api/bots"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/turns"
	"gatehouse/web/auth"
)

// routes are all of the contract's, each with the scopes that open it.
var routes = []struct {
	method, path, body string
	scopes             []string // nil: open
}{
	{"POST", "/api/chat", `{"message":"hi"}`, []string{auth.ScopeChat}},
	{"GET", "/api/chat", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/chat/stream", `{"message":"hi"}`, []string{auth.ScopeChat}},
	{"GET", "/api/chat/sessions", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/chat/session/s1", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/chat/session/s1/archive", "", []string{auth.ScopeChat}},
	{"POST", "/api/chat/session/s1/unarchive", "", []string{auth.ScopeChat}},
	{"DELETE", "/api/chat/session/s1", "", []string{auth.ScopeChat}},
	{"DELETE", "/api/chat/session?agentPath=vault-agent", "", []string{auth.ScopeChat}},
	{"GET", "/api/agents", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/stats", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/v1/models", "", []string{auth.ScopeChat}},
	{"GET", "/v1/models/cook", "", []string{auth.ScopeChat}},
	{"POST", "/v1/chat/completions", `{"model":"cook","messages":[{"role":"user","content":"hi"}]}`, []string{auth.ScopeChat}},
	{"POST", "/v1/audio/transcriptions", "--form\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--form\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--form--\r\n", []string{auth.ScopeChat}},
	{"POST", "/v1/embeddings", `{"model":"small","input":"tea"}`, []string{auth.ScopeChat}},
	{"POST", "/v1/responses", `{"model":"cook","input":"hi"}`, []string{auth.ScopeChat}},
	{"GET", "/v1/responses/resp_a", "", []string{auth.ScopeChat}},
	{"GET", "/v1/responses/resp_a/input_items?limit=5", "", []string{auth.ScopeChat}},
	{"POST", "/v1/responses/resp_a/cancel", "", []string{auth.ScopeChat}},
	{"DELETE", "/v1/responses/resp_a", "", []string{auth.ScopeChat}},
	{"GET", "/api/chat/count?archived=true&tag=garden", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/chat/active-streams", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/chat/s1/events?run=r1", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/chat/s1/abort", "", []string{auth.ScopeChat}},
	{"GET", "/api/chat/s1/stream-status", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/chat/s1/answer", `{"id":"question","answers":{"Which?":"this"}}`, []string{auth.ScopeChat}},
	{"GET", "/api/chat/s1", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"PATCH", "/api/chat/s1", `{"title":"new"}`, []string{auth.ScopeChat}},
	{"DELETE", "/api/chat/s1", "", []string{auth.ScopeChat}},
	{"POST", "/api/chat/s1/archive", "", []string{auth.ScopeChat}},
	{"POST", "/api/chat/s1/unarchive", "", []string{auth.ScopeChat}},
	{"GET", "/api/chat/s1/messages", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/chat/s1/export.md", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/chat/s1/transcript", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/projects", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/projects", `{"name":"Garden"}`, []string{auth.ScopeChat}},
	{"PATCH", "/api/projects/p1", `{"name":"Hut"}`, []string{auth.ScopeChat}},
	{"DELETE", "/api/projects/p1", "", []string{auth.ScopeChat}},
	{"GET", "/api/sessions/s1/handoff", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/context/backups/coverage", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/context/backups/run", `{"session_id":"s1"}`, []string{auth.ScopeChat}},
	{"GET", "/api/chat/s1/tags", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/chat/s1/tags", `{"tag":"garden"}`, []string{auth.ScopeChat}},
	{"DELETE", "/api/chat/s1/tags/garden", "", []string{auth.ScopeChat}},
	{"GET", "/api/search?q=green+tea&type=session&type=document&tag=garden&folder=Notes&after=2026-01-01&before=2026-02-01T00:00:00Z&limit=5", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/scheduler", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/daily/agents", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/daily/agents/reflection", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/daily/agents/reflection/run", `{"date":"2026-01-28","force":true}`, []string{auth.ScopeAdmin}},
	{"GET", "/api/daily/agents/reflection/history?limit=5", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/voice", "", []string{auth.ScopeChat}},
	{"GET", "/api/memory", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/memory", `{"text":"Use tabs."}`, []string{auth.ScopeChat}},
	{"PATCH", "/api/memory/1", `{"pinned":true}`, []string{auth.ScopeChat}},
	{"GET", "/api/memory/1/events", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/memory/confirm", `{"correction_id":"2","choice":"save"}`, []string{auth.ScopeChat}},
	{"DELETE", "/api/memory/1", "", []string{auth.ScopeChat}},
	{"GET", "/api/journal/2026-01-28", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/journal/2026-01-28", `{"text":"tea"}`, []string{auth.ScopeChat}},
	{"GET", "/api/journal/entries/abc123def456", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"PATCH", "/api/journal/entries/abc123def456", `{"text":"tea"}`, []string{auth.ScopeChat}},
	{"DELETE", "/api/journal/entries/abc123def456", "", []string{auth.ScopeChat}},
	{"GET", "/api/sync/manifest?root=Notes&pattern=*.md&include_binary=true&date=2026-01-28", "", []string{auth.ScopeSync}},
	{"GET", "/api/sync/changes?since=1", "", []string{auth.ScopeSync}},
	{"POST", "/api/sync/push", `{"root":"","files":[{"path":"tea.md","content":"green"}]}`, []string{auth.ScopeSync}},
	{"POST", "/api/sync/pull", `{"root":"","paths":["tea.md","none.md"]}`, []string{auth.ScopeSync}},
	{"DELETE", "/api/sync/files", `{"path":"tea.md","base_hash":"sha256:4c9d72f8a0e1a1c9b7d5a3e4c9d72f8a0e1a1c9b7d5a3e4c9d72f8a0e1a1c9b7"}`, []string{auth.ScopeSync}},
	{"POST", "/api/import", `{"path":"/import-me.json","dry_run":true}`, []string{auth.ScopeAdmin}},
	{"GET", "/api/import", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/import/import", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/import/import/stream", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/import/import/entries", "", []string{auth.ScopeAdmin}},
	{"DELETE", "/api/import/import", "", []string{auth.ScopeAdmin}},
	{"PUT", "/api/contexts/my-project", `{"description":"The shed","folders":["Notes"],"files":[]}`, []string{auth.ScopeChat}},
	{"GET", "/api/contexts/my-project", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"DELETE", "/api/contexts/my-project", "", []string{auth.ScopeChat}},
	{"GET", "/api/council/queries", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/council/queries/q1", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"POST", "/api/council/queries/q1/pick", `{"model_id":"b"}`, []string{auth.ScopeChat}},
	{"GET", "/api/council/models", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/council/reliability?model_id=a&since=2020-01-01T00:00:00Z", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/council/analytics", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/council/domains", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/tags", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/tags/garden/sessions", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/chat/s1/contexts", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"PUT", "/api/chat/s1/contexts", `{"contexts":["Notes"]}`, []string{auth.ScopeChat}},
	{"POST", "/api/chat/s1/contexts", `{"contexts":["Notes"]}`, []string{auth.ScopeChat}},
	{"DELETE", "/api/chat/s1/contexts?path=Notes", "", []string{auth.ScopeChat}},
	{"GET", "/api/contexts/sessions?path=Notes", "", []string{auth.ScopeRead, auth.ScopeChat}},
	{"GET", "/api/permissions/stream", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/permissions/call/grant", `{"pattern":"Notes/*"}`, []string{auth.ScopeAdmin}},
	{"POST", "/api/permissions/call/deny", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/permissions/grants?user_id=7&session_id=s1", "", []string{auth.ScopeAdmin}},
	{"DELETE", "/api/permissions/grants/grant", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/bots/status", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/one/start", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/one/stop", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/one/test", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/bots/pairing", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/bots/pairing/p1", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/pairing/p1/approve", `{"trust_level":"sandboxed"}`, []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/pairing/p1/deny", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/pairing/p1/block", "", []string{auth.ScopeAdmin}},
	{"DELETE", "/api/bots/pairing/one/u1", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/bots/access", "", []string{auth.ScopeAdmin}},
	{"DELETE", "/api/bots/access/3", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/bots/one/messages", `{"chat":"c1","text":"**hello**"}`, []string{auth.ScopeSend}},
	{"GET", "/api/bots/one/messages/7-00000000-0000-4000-8000-000000000001", "", []string{auth.ScopeSend, auth.ScopeAdmin}},
	{"GET", teaChunks, "", []string{auth.ScopeAdmin}},
	{"PUT", teaChunks, `{"chunks":[{"field":"summary","text":"How to brew."}]}`, []string{auth.ScopeAdmin}},
	{"DELETE", teaChunks, "", []string{auth.ScopeAdmin}},
	{"GET", "/api/keys", "", []string{auth.ScopeAdmin}},
	{"POST", "/api/keys", `{"label":"alerts","trust_level":"sandboxed"}`, []string{auth.ScopeAdmin}},
	{"PATCH", "/api/keys/spare", `{"label":"alerts of db2"}`, []string{auth.ScopeAdmin}},
	{"POST", "/api/keys/spare/rotate", "", []string{auth.ScopeAdmin}},
	{"DELETE", "/api/keys/spare", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/audit?user_id=1&action=key.*&since=2020-01-01", "", []string{auth.ScopeAdmin}},
	{"GET", "/api/usage?by=day,model,user,bot", "", []string{auth.ScopeAdmin}},
	{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{auth.ScopeChat, auth.ScopeRead, auth.ScopeSend, auth.ScopeAdmin}},
	{"GET", "/metrics", "", []string{auth.ScopeMetrics}},
	{"GET", "/readyz", "", nil},
	{"GET", "/healthz", "", nil},
	{"GET", "/openapi.json", "", nil},
	{"GET", "/docs", "", nil},
	{"GET", "/openapi.yaml", "", nil},
	{"GET", "/docs/problems/conflict", "", nil},
}

// furnish adds the rows that the routes name.
func furnish(h *harness, user int64) {
	sid, _, _ := (*sessionsDouble)(h).Locate(context.Background(), user, "s1")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[sid] = sessions.Row{ID: sid, User: user, CreatedAt: h.clock.Now(), LastAccessed: h.clock.Now()}
	h.sessions["s1"] = h.sessions[sid]
	h.runs["r1"] = turns.Run{ID: "r1", Session: sid, User: user, Ended: true}
	h.posted["7-00000000-0000-4000-8000-000000000001"] = bots.Posted{ID: "7-00000000-0000-4000-8000-000000000001", Bot: "one", Chat: "c1", Status: "sent", Parts: 1, Delivered: 1, CreatedAt: h.clock.Now(), SentAt: h.clock.Now()}
	h.bots = []core.BotState{{Bot: "one", Platform: "p", State: core.Running, Since: h.clock.Now()}}
	h.requests["p1"] = request("p1", h.clock.Now())
	h.rows = []core.AccessRow{{ID: 3, Bot: "one", User: 9, Role: "guest", PlatformUserID: "u1", Scope: core.ScopeDM, Trust: core.Sandboxed, At: h.clock.Now()}}
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	h.imports.imported(h)
	h.document("Public/Tea.md", "Green tea.")
	h.spare(user)
	h.entry(user)
	h.remembers(user)
	h.context()
	h.dispute(user, "q1")
	h.asks(sid, user)
	h.respond(user)
	h.row(sid, user)
	h.talk(sid, transcript.Message{Role: "user", Blocks: textBlocks("hello")})
	h.noted(sid, user)
	h.project(user)
}

// drain reads an answer whole, and of a stream that has no end what it begins with.
func drain(h *harness, res *http.Response) {
	h.t.Helper()
	defer res.Body.Close()
	if res.StatusCode == 200 && res.Request.URL.Path == "/api/permissions/stream" {
		readUntil(h.t, res, "permissionRequest")
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
}

func request(id string, now time.Time) core.PairingRequest {
	return core.PairingRequest{ID: id, Bot: "one", Platform: "p", PlatformUserID: "9007199254740993", Display: "<b>Eve</b>", PlatformChatID: "1", Scope: core.ScopeDM,
		Status: "pending", Code: "ABCD2345", CodeExpiresAt: now, ExpiresAt: now, CreatedAt: now, FirstMessage: "hello", Held: 1}
}

// TestTheScopeMatrix asks every route with every single scope, with none, and
// without a key.
func TestTheScopeMatrix(t *testing.T) {
	h := open(t, options{})
	keys := map[string]string{"none": h.key()}
	for _, s := range auth.Scopes() {
		keys[s] = h.key(s)
	}
	for _, r := range routes {
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			furnish(h, 7)
			res := h.do("", r.method, r.path, r.body)
			drain(h, res)
			if open := r.scopes == nil; open != (res.StatusCode == 200) || !open && (res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "") {
				t.Errorf("without a key: %d", res.StatusCode)
			}
			if strings.HasPrefix(r.path, "/api") {
				if bad := h.do("gh_0000000000000000000000000000000", r.method, r.path, r.body); bad.StatusCode != 401 && bad.StatusCode != 429 {
					t.Errorf("a wrong key: %d", bad.StatusCode)
				}
			}
			for scope, key := range keys {
				if r.path == "/api/import" && r.method == "POST" && scope == auth.ScopeAdmin {
					key = h.keyOf(core.Operator, core.Full, scope) // a path is the owner's
				}
				allowed := r.scopes == nil || strings.Contains(" "+strings.Join(r.scopes, " ")+" ", " "+scope+" ")
				if allowed { // else it is there already, or whoever finds it missing was not refused
					furnish(h, 7)
				}
				res := h.do(key, r.method, r.path, r.body)
				drain(h, res)
				if allowed && res.StatusCode >= 300 || !allowed && res.StatusCode != 403 {
					t.Errorf("scope %s: %d", scope, res.StatusCode)
				}
			}
		})
	}
	h.endMCP(t, keys[auth.ScopeRead])
	for path, item := range h.seen.doc.Paths.Map() {
		for method := range item.Operations() {
			found := false
			for answer := range h.seen.answers {
				found = found || strings.HasPrefix(answer, method+" "+path+" 20")
			}
			if !found {
				t.Errorf("%s %s is in the document and was not seen to work", method, path)
			}
		}
	}
}

// TestForeignPagesReachNoRoute sends what a rebound name, a foreign page and a
// foreign stream would send, with a good key, to every route.
func TestForeignPagesReachNoRoute(t *testing.T) {
	h := open(t, options{localhost: true})
	key := h.key(auth.Scopes()...)
	furnish(h, 7)
	for _, r := range routes {
		h.want(421, "host-not-allowed", key, r.method, r.path, r.body, "Host", "attacker.example:3333")
		h.want(421, "host-not-allowed", "", r.method, r.path, r.body, "Host", "attacker.example")
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"},
			{"Origin", "https://attacker.example"}, {"Origin", "null"}, {"Origin", "http://localhost:8080"},
		} {
			h.want(403, "foreign-origin", key, r.method, r.path, r.body, header...)
			h.want(403, "foreign-origin", "", r.method, r.path, r.body, header...)
		}
	}
	if len(h.put) != 0 || len(h.aborted) != 0 {
		t.Error("something got through")
	}
}

func TestKeylessChatFromThisMachine(t *testing.T) {
	h := open(t, options{localhost: true})
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	h.want(200, "", "", "POST", "/api/chat", `{"message":"a"}`, "Accept", "application/json")
	in := h.last()
	if in.Turn.Key != auth.LocalKey || in.Turn.User != auth.LocalUser {
		t.Errorf("turn %+v", in.Turn)
	}
	h.want(403, "forbidden", "", "POST", "/api/chat", `{"message":"a","trust_level":"vault"}`)
	for _, r := range routes {
		if r.scopes != nil && !strings.Contains(strings.Join(r.scopes, " "), auth.ScopeChat) {
			h.want(403, "forbidden", "", r.method, r.path, r.body)
		}
	}
	for _, r := range routes {
		if strings.HasPrefix(r.path, "/api/memory/") || r.method+r.path == "POST/api/memory" {
			m := h.want(403, "forbidden", "", r.method, r.path, r.body)
			if detail, _ := m["detail"].(string); !strings.Contains(detail, "a request without a key is no user's") {
				t.Errorf("%s %s: %q", r.method, r.path, detail)
			}
		}
	}
	h.want(401, "unauthorized", "", "POST", "/api/chat", `{"message":"a"}`, "X-Forwarded-For", "192.0.2.1")
	closed := open(t, options{})
	closed.want(401, "unauthorized", "", "POST", "/api/chat", `{"message":"a"}`)
}

func TestAnAdminSessionNeedsItsTokenForUnsafeRequests(t *testing.T) {
	h := open(t, options{admin: true})
	furnish(h, core.Operator)
	res := h.do("", "POST", "/sign-in", "")
	if res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	cookie := res.Cookies()[0].String()
	var csrf string
	r, _ := http.NewRequest("GET", "/", nil)
	r.Host = res.Request.URL.Host
	r.Header.Set("Cookie", strings.Split(cookie, ";")[0])
	r, err := h.api.Authenticator.Identify(r)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := auth.From(r.Context()); ok {
		csrf = p.CSRF()
	}
	with := []string{"Cookie", strings.Split(cookie, ";")[0]}
	for _, r := range routes {
		if r.path == "/mcp" { // it takes keys alone
			continue
		}
		furnish(h, core.Operator)
		if r.method == "GET" {
			if res := h.do("", r.method, r.path, r.body, with...); res.StatusCode >= 300 {
				t.Errorf("%s %s: %d", r.method, r.path, res.StatusCode)
			}
			continue
		}
		slug := "forbidden"
		if strings.HasPrefix(r.path, "/v1/") { // in OpenAI's form
			slug = ""
		}
		h.want(403, slug, "", r.method, r.path, r.body, with...)
		h.want(403, slug, "", r.method, r.path, r.body, append(with, "X-CSRF-Token", "guess")...)
		if res := h.do("", r.method, r.path, r.body, append(with, "X-CSRF-Token", csrf)...); res.StatusCode >= 300 {
			t.Errorf("with the token: %s %s: %d", r.method, r.path, res.StatusCode)
		}
	}
	in := h.last()
	if in.Turn.Key != "" || in.Turn.User != core.Operator {
		t.Errorf("turn %+v", in.Turn)
	}
}

func TestASecondDecisionNamesWhoDecidedFirst(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	furnish(h, 1)
	end := h.clock.Now().Add(24 * time.Hour).Format(time.RFC3339)
	m := h.want(200, "", key, "POST", "/api/bots/pairing/p1/approve", `{"trustLevel":"vault","scope":"dm","expires_at":"`+end+`"}`)
	if m["status"] != "approved" || h.approval.Trust != core.Vault || h.approval.Most != core.Vault || h.approval.Scope != core.ScopeDM || h.approval.ExpiresAt.IsZero() {
		t.Errorf("%v %+v", m, h.approval)
	}
	for _, second := range []string{"approve", "deny", "block"} {
		m := h.want(409, "conflict", key, "POST", "/api/bots/pairing/p1/"+second, "")
		if m["request_status"] != "approved" || m["resolved_by"] != "user 1 via api" || m["detail"] != "already approved by user 1 via api" {
			t.Errorf("%s: %v", second, m)
		}
	}
	h.requests["p1"] = request("p1", h.clock.Now())
	h.want(403, "forbidden", key, "POST", "/api/bots/pairing/p1/approve", `{"trust_level":"full"}`)
	for _, bad := range []string{`{"trust_level":"root"}`, `{"scope":"all"}`, `{"expires_at":"tomorrow"}`, `{"expires_at":"2020-01-01T00:00:00Z"}`, `[]`} {
		h.want(400, "invalid-request", key, "POST", "/api/bots/pairing/p1/approve", bad)
	}
	if h.requests["p1"].Status != "pending" {
		t.Error("a refused decision was taken")
	}
	h.want(404, "not-found", key, "POST", "/api/bots/pairing/nope/deny", "")
	h.want(404, "not-found", key, "GET", "/api/bots/pairing/nope", "")
	h.want(400, "invalid-request", key, "GET", "/api/bots/pairing?status=odd", "")
	h.want(400, "invalid-request", key, "DELETE", "/api/bots/access/x", "")
	h.want(404, "not-found", key, "DELETE", "/api/bots/access/99", "")
	if m := h.want(200, "", key, "DELETE", "/api/bots/pairing/p/u1", ""); m["revoked"] != 1.0 {
		t.Errorf("revoke by the platform's name: %v", m)
	}
}

func TestBotIsFoundByNameOrByItsPlatform(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	now := h.clock.Now()
	h.bots = []core.BotState{{Bot: "a", Platform: "p", State: core.Running, Since: now}, {Bot: "b", Platform: "q", State: core.Running, Since: now}, {Bot: "c", Platform: "q", State: core.Running, Since: now}}
	if m := h.want(200, "", key, "POST", "/api/bots/p/stop", ""); m["bot"] != "a" || m["state"] != "stopped" {
		t.Errorf("%v", m)
	}
	h.want(409, "conflict", key, "POST", "/api/bots/q/stop", "")
	h.want(404, "not-found", key, "POST", "/api/bots/nope/stop", "")
	if m := h.want(200, "", key, "POST", "/api/bots/c/test", ""); m["ok"] != true || m["username"] != "the_bot" {
		t.Errorf("%v", m)
	}
	h.testErr = core.Errorf(core.Denied, "the platform refuses the token")
	if m := h.want(200, "", key, "POST", "/api/bots/c/test", ""); m["ok"] != false || m["reason"] != "the platform refuses the token" {
		t.Errorf("%v", m)
	}
	h.testErr = errors.New("token gh_x")
	h.want(500, "internal", key, "POST", "/api/bots/c/test", "")
}

func TestReadinessReportsReasonsToOperatorsOnly(t *testing.T) {
	h := open(t, options{})
	operator, guest := h.key(auth.ScopeMetrics), h.key(auth.ScopeChat)
	now := h.clock.Now()
	next := func() { h.clock.Advance(time.Second) }
	set := func(check error, bots ...core.Phase) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.checkErr, h.bots = check, nil
		for i, b := range bots {
			h.bots = append(h.bots, core.BotState{Bot: string(rune('a' + i)), Platform: "p", State: b, Reason: "the reason", Since: now})
		}
	}
	for _, c := range []struct {
		name   string
		check  error
		bots   []core.Phase
		status int
	}{
		{"no bots", nil, nil, 200}, {"all well", nil, []core.Phase{core.Running, core.Degraded}, 200}, {"one failed", nil, []core.Phase{core.Running, core.FailedPhase}, 200},
		{"all failed", nil, []core.Phase{core.FailedPhase, core.FailedPhase}, 503}, {"failed and stopped", nil, []core.Phase{core.FailedPhase, core.Stopped}, 503},
		{"all stopped by hand", nil, []core.Phase{core.Stopped}, 200}, {"queue", errors.New("disk full"), []core.Phase{core.Running}, 503},
	} {
		set(c.check, c.bots...)
		next()
		if m := h.want(c.status, "", "", "GET", "/readyz", ""); len(m) != 1 {
			t.Errorf("%s: nobody learns %v", c.name, m)
		}
		if m := h.want(c.status, "", guest, "GET", "/readyz", ""); len(m) != 1 {
			t.Errorf("%s: a guest learns %v", c.name, m)
		}
		m := h.want(c.status, "", operator, "GET", "/readyz", "")
		if checks, _ := m["checks"].([]any); len(checks) < 2 {
			t.Errorf("%s: the operator learns %v", c.name, m)
		}
	}
	before := h.db.Commits()
	for range 20 {
		h.want(503, "", "", "GET", "/readyz", "")
	}
	if n := h.db.Commits() - before; n != 0 {
		t.Errorf("20 anonymous questions cost %d commits", n)
	}
	if err := h.db.Close(); err != nil {
		t.Fatal(err)
	}
	set(nil)
	next()
	h.want(503, "", "", "GET", "/readyz", "")
	h.want(200, "", "", "GET", "/healthz", "")
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.want(401, "unauthorized", "", "GET", "/api/nothing", "")
	h.want(404, "not-found", key, "GET", "/api/nothing", "")
	res := h.do(key, "PUT", "/api/chat", `{}`)
	if m := h.answer(res); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, POST" || m["type"] != "/docs/problems/method-not-allowed" {
		t.Errorf("%d %q %v", res.StatusCode, res.Header.Get("Allow"), m)
	}
}

func TestTheDocumentIsValidAndServedAsJSON(t *testing.T) {
	h := open(t, options{})
	m := h.want(200, "", "", "GET", "/openapi.json", "")
	if m["openapi"] != "3.1.0" || m["info"].(map[string]any)["version"] != "1" {
		t.Errorf("%v %v", m["openapi"], m["info"])
	}
	fromYAML, err := json.Marshal(h.seen.doc)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(fromYAML, &want); err != nil {
		t.Fatal(err)
	}
	if len(m["paths"].(map[string]any)) != len(want["paths"].(map[string]any)) || len(m["components"].(map[string]any)["schemas"].(map[string]any)) != len(h.seen.doc.Components.Schemas) {
		t.Error("the JSON is not the whole document")
	}
}

func TestDocsPageLinksToTheDocument(t *testing.T) {
	h := open(t, options{})
	page := readAll(t, h.do("", "GET", "/docs", ""))
	for _, link := range []string{"/openapi.json", "/openapi.yaml"} {
		if !strings.Contains(page, `href="`+link+`"`) {
			t.Errorf("the page does not link to %s", link)
		}
	}
	if got := readAll(t, h.do("", "GET", "/openapi.yaml", "")); got != string(source) {
		t.Errorf("openapi.yaml is served with %d bytes of %d", len(got), len(source))
	}
}

func TestNoSecretIsLoggedByAnyRoute(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.Scopes()...)
	for _, r := range routes {
		furnish(h, 7)
		sep := "?"
		if strings.Contains(r.path, "?") {
			sep = "&"
		}
		drain(h, h.do(key, r.method, r.path+sep+"limit=1&token="+key, r.body))
		drain(h, h.do(key+"x", r.method, r.path, r.body))
	}
	if log := h.log.String(); strings.Contains(log, key[3:]) || !strings.Contains(log, "path=/api/chat") {
		t.Errorf("log: %s", log)
	}
}

// TestEveryRouteIsInTheDocument holds what is served against what is written;
// the other way round every operation is seen to work.
func TestEveryRouteIsInTheDocument(t *testing.T) {
	h := open(t, options{})
	patterns := slices.Concat(h.api.Routes(), h.first.Routes(), h.v1.Routes(), h.responses.Routes(), h.vectors.Routes(), h.heard.Routes())
	if len(patterns) < 60 {
		t.Errorf("only %d routes", len(patterns))
	}
	for _, p := range patterns {
		method, path, _ := strings.Cut(p, " ")
		item := h.seen.doc.Paths.Value(strings.ReplaceAll(path, "...", ""))
		if item == nil || item.GetOperation(method) == nil {
			t.Errorf("%s is not in the document", p)
		}
	}
}
