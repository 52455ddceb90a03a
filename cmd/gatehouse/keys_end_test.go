package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/auth"
)

// TestTheEndOfAKeyEndsWhatItAskedFor: a run is stopped when its key has
// expired, while it waits for somebody; and when it is revoked over the API,
// with all that the run started, also where Claude Code makes it, which asks
// nobody whether it may go on. Another key's run goes on.
func TestTheEndOfAKeyEndsWhatItAskedFor(t *testing.T) {
	t.Parallel()
	w := withClaude(t, nil)
	other := w.owners("", standIn, "say I go on\nuse Bash {\"command\":\"while [ ! -e go ]; do sleep 0.01; done\"}\nsay It is done.")
	w.allow(other)
	key := func(label string, user int64, trust core.Trust) (auth.KeyRow, http.Header) {
		secret, row, err := w.app.keys.Create(t.Context(), auth.NewKey{Label: label, User: user, Trust: trust, Scopes: []string{auth.ScopeChat}, ExpiresAt: time.Now().Add(time.Hour)}, cli)
		if err != nil {
			t.Fatal(err)
		}
		return row, http.Header{"Authorization": {"Bearer " + secret}}
	}
	over := func(how string, r *reading, header http.Header) {
		t.Helper()
		r.until("aborted")
		r.until("message_stop")
		if status, _, _ := w.asked("GET", "/api/chat", nil, header); status != 401 {
			t.Errorf("%s: it still opens: %d", how, status)
		}
	}
	row, header := key("expires", w.lend().user, core.Vault)
	r := w.read(w.open("POST", "/api/chat", map[string]any{"message": wantsToWrite}, header))
	r.until("permission_request")
	w.sql(`UPDATE api_keys SET expires_at = $1 WHERE id = $2`, core.Stamp(time.Now().Add(-time.Second)), row.ID)
	if _, err := w.app.keys.Expire(t.Context()); err != nil { // upkeep does so every minute
		t.Fatal(err)
	}
	over("expired", r, header)

	row, header = key("may not chat any more", w.lend().user, core.Vault)
	r = w.read(w.open("POST", "/api/chat", map[string]any{"message": wantsToWrite}, header))
	r.until("permission_request")
	if status, body := w.call("PATCH", "/api/keys/"+row.ID, map[string]any{"scopes": []string{"read"}}); status != 200 {
		t.Fatal(status, body)
	}
	r.until("aborted")
	r.until("message_stop")
	if status, _, _ := w.asked("POST", "/api/chat", map[string]any{"message": "hello"}, header); status != 403 {
		t.Errorf("without the scope it still chats: %d", status)
	}

	const mark = "361002" // among the arguments of the command
	row, header = key("is revoked", core.Operator, core.Full)
	r = w.read(w.open("POST", "/api/chat", map[string]any{"model": standIn, "message": "use Bash {\"command\":\"exec sleep " + mark + "\"}"}, header))
	w.allow(r)
	w.until("the command runs", func() bool { return runsWith(mark) })
	if status, body := w.call("DELETE", "/api/keys/"+row.ID, nil); status != 204 {
		t.Fatal(status, body)
	}
	over("revoked", r, header)
	if runsWith(mark) {
		t.Error("the command runs on")
	}
	w.put("go", "")
	if got := other.response(); got != "It is done." {
		t.Errorf("another key's run: %q", got)
	}
}

// Who lowers someone's access ends or replaces their keys: the trust of a key is its own.
func TestLoweringTheAccessOfAUserDoesNotChangeTheirKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	user := w.person(ada)
	access := w.count(`SELECT id FROM access WHERE user_id = $1`, user)
	to := func(trust core.Trust) {
		t.Helper()
		if err := w.app.pairing.People.ChangeAccess(t.Context(), int64(access), core.Approval{Trust: trust}, cli); err != nil {
			t.Fatal(err)
		}
	}
	vault := map[string]any{"label": "phone", "user_id": user, "trust_level": "vault", "scopes": []string{"chat"}}
	to(core.Vault)
	status, key, _ := w.asked("POST", "/api/keys", vault, nil)
	secret, _ := key["key"].(string)
	if status != http.StatusCreated || secret == "" {
		t.Fatal(status, key)
	}
	to(core.Sandboxed)
	if status, m, _ := w.asked("POST", "/api/keys", vault, nil); status != http.StatusForbidden || !strings.Contains(fmt.Sprint(m), "at most trust sandboxed") {
		t.Errorf("another key at vault: %d %v", status, m)
	}
	header := wantJSON.Clone()
	header.Set("Authorization", "Bearer "+secret)
	if status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "hello"}, header); status != http.StatusOK {
		t.Errorf("a turn of the key: %d %v", status, m)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE bot = 'api' AND trust = 'vault' AND state = 'done'`); n != 1 {
		t.Errorf("%d turns at vault, want 1", n)
	}
}

// A turn that waits behind another one of its conversation is stopped by its run's id: no
// model is asked for it. The one that runs goes on.
func TestATurnThatWaitsIsAbortedByItsRun(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	first := model.Total()
	model.Script(llmtest.Reply{Text: []string{"Begun"}, Hang: true})
	r := w.read(w.open("POST", "/api/chat", map[string]any{"message": "the first"}, nil))
	session, _ := r.until("session").Data["id"].(string)
	if session == "" {
		t.Fatalf("no session: %v", r.all)
	}
	w.until("the first runs", func() bool { return model.Total() == first+1 })
	resp := w.open("POST", "/api/chat", map[string]any{"message": "the second", "session_id": session}, http.Header{"Prefer": {"respond-async"}})
	var queued struct {
		Run string `json:"run_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&queued); err != nil || resp.StatusCode != 202 || queued.Run == "" {
		t.Fatal(resp.StatusCode, err, queued)
	}
	_ = resp.Body.Close()
	abort := func(query string, want bool) {
		t.Helper()
		var got struct{ Aborted bool }
		if status, body := w.call("POST", "/api/chat/"+session+"/abort"+query, nil); status != 200 || json.Unmarshal([]byte(body), &got) != nil || got.Aborted != want {
			t.Errorf("abort%s: %d %s", query, status, body)
		}
	}
	abort("?run=another", false)
	abort("?run="+queued.Run, true)
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'running'`); n != 1 {
		t.Errorf("%d runs, want the first", n)
	}
	second := w.read(w.open("GET", "/api/chat/"+session+"/events?run="+queued.Run, nil, nil))
	abort("", true)
	r.until("aborted")
	second.until("aborted")
	if n := model.Total(); n != first+1 {
		t.Errorf("the model was asked %d times", n-first)
	}
	abort("?run="+queued.Run, false) // it has ended
}
