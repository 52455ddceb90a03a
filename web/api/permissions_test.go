package api

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
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/web"
	"gatehouse/web/api/sessions"
	"gatehouse/web/auth"
)

// asks puts a tool call ("call"), a question ("question") and a grant ("grant")
// of user's session in place.
func (h *harness) asks(session string, user int64) {
	h.t.Helper()
	call := fmt.Sprintf(`{"request":{"id":"call","tool_name":"Write","kind":"write","path":"Notes/a.md","expires_at":%q,"suggested_grants":[{"scope":"folder","pattern":"Notes/*","label":"Notes/*"}]},
		"session_id":%q,"user_id":%d,"owner":true,"trust_level":"vault","reason":"why"}`, h.clock.Now().Add(2*time.Minute).Format(time.RFC3339), session, user)
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		for _, s := range []string{`DELETE FROM asks`, `DELETE FROM tool_grants`} {
			if _, err := tx.Exec(context.Background(), s); err != nil {
				return err
			}
		}
		for _, a := range []ask.Ask{
			{ID: "call", Kind: ask.KindPermission, Run: "r1", Bot: core.APIBot, Chat: session, Asker: user, Payload: call},
			{ID: "question", Kind: ask.KindQuestion, Run: "r1", Bot: core.APIBot, Chat: session, User: user, Asker: user, Payload: `{"questions":[]}`},
		} {
			a.ExpiresAt = h.clock.Now().Add(2 * time.Minute)
			if _, err := h.desk.Open(context.Background(), tx, a); err != nil {
				return err
			}
		}
		_, err := tx.Exec(context.Background(), `INSERT INTO tool_grants (id, session_id, user_id, trust, kind, pattern, ask, granted_by, created_at)
			VALUES ('grant', 's1', 7, $1, 'write', 'Old/*', 'x', 'operator', $2)`, core.Vault, core.Stamp(h.clock.Now()))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// readUntil gives the events of a stream up to the first of this type.
func readUntil(t *testing.T, res *http.Response, kind string) (all []map[string]any) {
	t.Helper()
	s := bufio.NewScanner(res.Body)
	for s.Scan() {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
		if m["type"] == kind {
			return all
		}
	}
	t.Fatalf("the stream ended before %s: %v", kind, all)
	return nil
}

var guest = permission.Profile{User: 7, Trust: core.Vault, Session: "s1", CanAsk: true, Bot: core.APIBot, Chat: "s1", Run: "r1"}

// wants has a tool of this turn want to change a file; the Decision comes when
// the call was decided.
func (h *harness) wants(p permission.Profile, path string) <-chan permission.Decision {
	out := make(chan permission.Decision, 1)
	go func() {
		d, err := h.guard.Allow(context.Background(), p, tool.Tool{Name: "Write", Kind: tool.Write},
			&tool.Call{ID: "c1", Input: json.RawMessage(`{}`), Access: tool.Access{Write: []string{path}}}, func(core.Event) {}, func(bool) {})
		if err != nil {
			h.t.Error(err)
		}
		out <- d
	}()
	return out
}

func TestAPendingFileChangeHasItsDiff(t *testing.T) {
	h := open(t, options{})
	key, low := h.keyOf(1, core.Vault, auth.ScopeAdmin), h.keyOf(1, core.Sandboxed, auth.ScopeAdmin)
	before := "Buy tea.\n"
	edit := tool.Tool{Name: "Edit", Kind: tool.Write, Change: func(context.Context, *tool.Call) (tool.Change, error) {
		return tool.Change{Before: &before, After: "Buy coffee.\n", State: "x"}, nil
	}}
	done := make(chan permission.Decision, 1)
	go func() {
		d, err := h.guard.Allow(context.Background(), guest, edit, &tool.Call{ID: "c1", Input: json.RawMessage(`{}`), Turn: &tool.Turn{}, Access: tool.Access{Write: []string{"a.md"}}},
			func(core.Event) {}, func(bool) {})
		if err != nil {
			t.Error(err)
		}
		done <- d
	}()
	h.clock.AwaitWaiters(1)
	es := readUntil(t, h.watch(key), "permissionRequest")
	got, _ := es[1]["request"].(map[string]any)["diff"].(map[string]any)
	if got["unified"] != "@@ -1,1 +1,1 @@\n-Buy tea.\n+Buy coffee.\n" || got["path"] != "a.md" || got["added"] != 1.0 || got["removed"] != 1.0 || got["new"] != false || got["more"] != 0.0 {
		t.Errorf("%v", got)
	}
	id := idOf(es[1])
	if r := readUntil(t, h.watch(low), "permissionRequest")[1]["request"].(map[string]any); r["diff"] != nil || r["path"] != "a.md" {
		t.Errorf("a key that may not read the file sees %v", r)
	}
	m := h.want(200, "", key, "POST", "/api/permissions/"+id+"/grant", "")
	if m["request"].(map[string]any)["diff"] == nil {
		t.Errorf("%v", m)
	}
	if d := <-done; d.Verdict != permission.Allow || d.Shown != "x" {
		t.Errorf("%+v", d)
	}
}

func (h *harness) watch(key string) *http.Response {
	h.t.Helper()
	res := h.do(key, "GET", "/api/permissions/stream", "")
	if res.StatusCode != 200 {
		h.t.Fatal(res.Status)
	}
	return res
}

func idOf(e map[string]any) string { return e["request"].(map[string]any)["id"].(string) }

func TestPermissionStreamReplaysPendingCallsAndReportsOutcomes(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	first := h.wants(guest, "Notes/a.md")
	h.clock.AwaitWaiters(1)
	stream := h.watch(key)
	es := readUntil(t, stream, "permissionRequest")
	if len(es) != 2 || es[0]["type"] != "connected" {
		t.Fatalf("the stream begins with %v", es)
	}
	r := es[1]["request"].(map[string]any)
	if r["path"] != "Notes/a.md" || r["tool_name"] != "Write" || r["kind"] != "write" || r["user_id"] != 7.0 || r["trust_level"] != "vault" || r["session_id"] != "s1" || r["reason"] == "" {
		t.Fatalf("%v", r)
	}
	m := h.want(200, "", key, "POST", "/api/permissions/"+idOf(es[1])+"/grant", "")
	if m["decision"] != "granted" || m["by"] != "operator via api" {
		t.Errorf("%v", m)
	}
	if d := <-first; d.Verdict != permission.Allow {
		t.Errorf("%+v", d)
	}
	es = readUntil(t, stream, "permissionGranted")
	if len(es) != 1 || idOf(es[0]) != r["id"] || es[0]["by"] != "operator via api" || es[0]["decided_at"] == nil {
		t.Errorf("%v", es)
	}
	second := h.wants(guest, "Notes/b.md")
	id := idOf(readUntil(t, stream, "permissionRequest")[0])
	h.want(200, "", key, "POST", "/api/permissions/"+id+"/deny", "")
	if d := <-second; d.Verdict != permission.Deny || !strings.Contains(d.Text, "operator via api") {
		t.Errorf("%+v", d)
	}
	if es := readUntil(t, stream, "permissionDenied"); len(es) != 1 || es[0]["decision"] != "denied" {
		t.Errorf("%v", es)
	}
	third := h.wants(guest, "Notes/c.md")
	readUntil(t, stream, "permissionRequest")
	for range 9 {
		h.clock.AwaitWaiters(1)
		h.clock.Advance(15 * time.Second)
	}
	if d := <-third; d.Rule != permission.RuleTimeout {
		t.Errorf("%+v", d)
	}
	if es := readUntil(t, stream, "permissionDenied"); len(es) != 1 || es[0]["decision"] != "timeout" || es[0]["by"] != "" {
		t.Errorf("%v", es)
	}
}

func TestAPermissionStreamEndsWithItsKeyAndWithTheServer(t *testing.T) {
	h := open(t, options{streams: 1})
	key := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	stream := h.watch(key)
	readUntil(t, stream, "connected")
	h.want(429, "too-many-requests", key, "GET", "/api/permissions/stream", "")
	rows, err := h.keys.List(context.Background(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.keys.Revoke(context.Background(), rows[0].ID, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	h.clock.AwaitWaiters(3) // heartbeat, guard, look
	h.clock.Advance(web.Heartbeat)
	for s := bufio.NewScanner(stream.Body); s.Scan(); {
	}
	other := h.watch(h.keyOf(1, core.Vault, auth.ScopeAdmin))
	readUntil(t, other, "connected")
	h.stop()
	for s := bufio.NewScanner(other.Body); s.Scan(); {
	}
}

// A stream ends at once when its key is revoked or loses the scope that it needs, and goes on
// when the key loses another.
func TestAStreamEndsWhenItsKeyLosesTheScopeItNeeds(t *testing.T) {
	const calls, own, theirs, imported = "/api/permissions/stream", "/api/chat/61c1d5a4-0a0e-4b52-9d0a-0f5a3c6f7b01/events", "/api/chat/61c1d5a4-0a0e-4b52-9d0a-0f5a3c6f7b02/events", "/api/import/" + unending + "/stream"
	has := func(scopes ...string) []string { return scopes }
	for name, c := range map[string]struct {
		path   string
		before []string
		after  []string // nil: the key is revoked
		ends   bool
	}{
		"calls, without admin": {calls, has(auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeRead), true},
		"calls, without send":  {calls, has(auth.ScopeSend, auth.ScopeAdmin), has(auth.ScopeAdmin), false},
		"calls, revoked":       {calls, has(auth.ScopeAdmin), nil, true},

		"an import, without admin": {imported, has(auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeRead), true},
		"an import, revoked":       {imported, has(auth.ScopeAdmin), nil, true},

		"another user's conversation, without admin":         {theirs, has(auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeRead), true},
		"another user's conversation, without chat and read": {theirs, has(auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeAdmin), true},
		"another user's conversation, without read":          {theirs, has(auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeChat, auth.ScopeAdmin), true},
		"another user's conversation, without chat":          {theirs, has(auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeRead, auth.ScopeAdmin), false},
		"another user's conversation, without send":          {theirs, has(auth.ScopeRead, auth.ScopeSend, auth.ScopeAdmin), has(auth.ScopeRead, auth.ScopeAdmin), false},

		"an own conversation, without read":          {own, has(auth.ScopeChat, auth.ScopeRead), has(auth.ScopeChat), false},
		"an own conversation, without chat":          {own, has(auth.ScopeChat, auth.ScopeRead), has(auth.ScopeRead), false},
		"an own conversation, without admin":         {own, has(auth.ScopeChat, auth.ScopeAdmin), has(auth.ScopeChat), false},
		"an own conversation, without chat and read": {own, has(auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin), has(auth.ScopeAdmin), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, options{})
			session := func(path string) string { return strings.Split(path, "/")[3] }
			users := map[string]int64{session(own): 7, session(theirs): 8}
			for id, user := range users {
				h.sessions[id] = sessions.Row{ID: id, User: user}
			}
			secret, row, err := h.keys.Create(t.Context(), auth.NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: c.before}, core.Actor{})
			if err != nil {
				t.Fatal(err)
			}
			res := h.do(secret, "GET", c.path, "")
			if res.StatusCode != 200 {
				t.Fatal(res.Status)
			}
			if c.after == nil {
				err = h.keys.Revoke(t.Context(), row.ID, core.Actor{})
			} else {
				_, err = h.keys.Change(t.Context(), row.ID, auth.KeyChange{Scopes: &c.after}, core.Actor{})
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.ends { // the clock stands still
				read := make(chan error, 1)
				go func() {
					_, err := io.Copy(io.Discard, res.Body)
					read <- err
				}()
				select {
				case err := <-read:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Error("the stream goes on")
				}
				return
			}
			h.door.Look() // it calls who is gone before it returns
			if c.path == calls {
				h.asks("s1", 7)
				h.bus.Ring(core.TopicApprovals)
				readUntil(t, res, "permissionRequest")
				return
			}
			id := session(c.path)
			in := core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: id}, Text: "hi", Turn: &core.Options{Run: "later", User: users[id]}}
			s := h.begin(in, 1)
			h.opening(s, in)
			readUntil(t, res, "user_message")
			h.finish(s, done(in, "x"))
		})
	}
}

// A flushed calls then once, after the first bytes of the answer were sent.
type flushed struct {
	http.ResponseWriter
	then func()
}

func (w flushed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w flushed) FlushError() error {
	defer w.then()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Who has the first bytes of a stream can rely on that a change of its key ends it at once.
func TestAStreamIsWatchedBeforeItsAnswerBegins(t *testing.T) {
	for _, path := range []string{"/api/permissions/stream", "/api/import/" + unending + "/stream"} {
		t.Run(path, func(t *testing.T) {
			h := open(t, options{})
			secret, row, err := h.keys.Create(t.Context(), auth.NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{auth.ScopeAdmin}}, core.Actor{})
			if err != nil {
				t.Fatal(err)
			}
			revoke := sync.OnceFunc(func() { // Revoke has the streams checked later, too
				if err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
					_, err := tx.Exec(context.Background(), `DELETE FROM api_keys WHERE id = $1`, row.ID)
					return err
				}); err != nil {
					t.Error(err)
				}
				h.door.Look()
			})
			handler := h.handler()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(flushed{w, revoke}, r)
			}))
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+secret)
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 { // the clock stands still
				t.Errorf("%s, then %v", res.Status, err)
			}
		})
	}
}

func TestAGrantIsStoredListedAndRevoked(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	h.asks("s1", 7)
	h.want(400, "invalid-request", key, "POST", "/api/permissions/call/grant", `{"pattern":"**"}`)
	h.want(400, "invalid-request", key, "POST", "/api/permissions/call/grant", `{"pattern":""}`)
	h.want(200, "", key, "POST", "/api/permissions/call/grant", `{"pattern":"Notes/*","other":1}`)
	list := func(query string) []any {
		return h.want(200, "", key, "GET", "/api/permissions/grants"+query, "")["grants"].([]any)
	}
	all := list("")
	if len(all) != 2 || len(list("?user_id=8")) != 0 || len(list("?session_id=s1&user_id=7")) != 2 {
		t.Fatalf("%v", all)
	}
	var id string
	for _, g := range all {
		if g := g.(map[string]any); g["pattern"] == "Notes/*" {
			id = g["id"].(string)
			if g["by"] != "operator via api" || g["trust_level"] != "vault" || g["kind"] != "write" {
				t.Errorf("%v", g)
			}
		}
	}
	if d := <-h.wants(guest, "Notes/z.md"); d.Verdict != permission.Allow {
		t.Errorf("%+v", d)
	}
	h.want(204, "", key, "DELETE", "/api/permissions/grants/"+id, "")
	h.want(404, "not-found", key, "DELETE", "/api/permissions/grants/"+id, "")
	again := h.wants(guest, "Notes/z.md")
	stream := h.watch(key)
	h.want(200, "", key, "POST", "/api/permissions/"+idOf(readUntil(t, stream, "permissionRequest")[1])+"/deny", "")
	if d := <-again; d.Verdict != permission.Deny {
		t.Errorf("%+v", d)
	}
	h.want(400, "invalid-request", key, "GET", "/api/permissions/grants?user_id=none", "")
}

func TestASecondDecisionOnACallNamesWhoDecidedFirst(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	h.asks("s1", 7)
	var mu sync.Mutex
	won := map[int]int{}
	var wg sync.WaitGroup
	for i := range 8 {
		verb := []string{"grant", "deny"}[i%2]
		wg.Go(func() {
			res, err := h.try(key, "POST", "/api/permissions/call/"+verb, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			m := map[string]any{}
			_ = json.NewDecoder(res.Body).Decode(&m)
			mu.Lock()
			defer mu.Unlock()
			won[res.StatusCode]++
			if res.StatusCode == 409 && (m["resolved_by"] != "operator via api" || m["resolved_at"] == nil || m["decision"] == nil || !strings.Contains(m["detail"].(string), "operator via api")) {
				t.Errorf("who came second is told %v", m)
			}
		})
	}
	wg.Wait()
	if won[200] != 1 || won[409] != 7 {
		t.Errorf("%v", won)
	}
	h.asks("s1", 7)
	h.clock.Advance(3 * time.Minute)
	if m := h.want(409, "conflict", key, "POST", "/api/permissions/call/grant", ""); !strings.Contains(m["detail"].(string), "expired") {
		t.Errorf("%v", m)
	}
}

func TestGrantCannotExceedTheKeysTrust(t *testing.T) {
	h := open(t, options{})
	low := h.keyOf(1, core.Sandboxed, auth.ScopeAdmin)
	own := h.keyOf(7, core.Vault, auth.ScopeAdmin)
	owner := h.keyOf(1, core.Vault, auth.ScopeAdmin)
	call := h.wants(guest, "Notes/a.md")
	h.clock.AwaitWaiters(1)
	stream := h.watch(owner)
	id := idOf(readUntil(t, stream, "permissionRequest")[1])
	h.want(403, "forbidden", low, "POST", "/api/permissions/"+id+"/grant", "")
	h.want(403, "forbidden", own, "POST", "/api/permissions/"+id+"/grant", "")
	h.want(403, "forbidden", h.keyOf(7, core.Vault, auth.ScopeChat), "POST", "/api/permissions/"+id+"/grant", "")
	h.want(404, "not-found", owner, "POST", "/api/permissions/nothing/grant", "")
	h.want(404, "not-found", owner, "POST", "/api/permissions/nothing/deny", "")
	h.want(200, "", low, "POST", "/api/permissions/"+id+"/deny", "") // to refuse needs no trust
	if d := <-call; d.Verdict != permission.Deny {
		t.Errorf("%+v", d)
	}
	h.asks("s1", 7)
	h.want(404, "not-found", owner, "POST", "/api/permissions/question/grant", "") // a question is no permission
	h.want(404, "not-found", owner, "POST", "/api/permissions/question/deny", "")
}

func TestOnlyTheUserWhoWasAskedAnswersAQuestion(t *testing.T) {
	h := open(t, options{})
	furnish(h, 7)
	key := h.key(auth.ScopeChat)
	for _, body := range []string{`{}`, `{"id":"question"}`, `{"id":"question","answers":null}`, `{"id":"question","answers":5}`, `{"id":7,"answers":{}}`} {
		h.want(400, "invalid-request", key, "POST", "/api/chat/s1/answer", body)
	}
	answer := func(id string) string { return `{"id":"` + id + `","answers":{"Which?":"this"}}` }
	h.want(404, "not-found", key, "POST", "/api/chat/s1/answer", answer("call")) // no question
	h.want(404, "not-found", key, "POST", "/api/chat/s1/answer", answer("nothing"))
	h.want(404, "not-found", h.keyOf(8, core.Vault, auth.ScopeChat), "POST", "/api/chat/s1/answer", answer("question"))
	h.want(404, "not-found", h.keyOf(1, core.Vault, auth.Scopes()...), "POST", "/api/chat/s1/answer", answer("question")) // an admin was not asked
	h.want(200, "", key, "POST", "/api/chat/s1/answer", answer("question"))
	if m := h.want(409, "conflict", key, "POST", "/api/chat/s1/answer", answer("question")); !strings.Contains(m["detail"].(string), "user 7 via api") {
		t.Errorf("%v", m)
	}
	furnish(h, 7)
	res := h.do(key, "POST", "/api/chat/s1/answer", `{"id":"question","answers":"this one","more":1}`)
	if h.answer(res); res.StatusCode != 200 || !strings.Contains(res.Header.Get("Warning"), "more") {
		t.Errorf("%s %q", res.Status, res.Header.Get("Warning"))
	}
}

func TestPermissionStreamIsReadWithGETOnly(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	for _, c := range []struct {
		header []string
		alone  bool
	}{{nil, false}, {[]string{"Accept", "text/event-stream"}, false}, {[]string{"Accept", "application/json"}, true}, {[]string{"Prefer", "respond-async"}, true}} {
		drain(h, h.do(key, "POST", "/api/chat", `{"message":"hi"}`, c.header...))
		if got := h.last().Turn.Alone; got != c.alone {
			t.Errorf("%v: alone %v", c.header, got)
		}
	}
}
