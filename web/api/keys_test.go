package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// TestCreateKey_CannotExceedItsCreator: not in scope, not in trust, and
// not as the owner; what is made is what was asked for, shown once.
func TestCreateKey_CannotExceedItsCreator(t *testing.T) {
	h := open(t, options{})
	admin := h.keyOf(7, core.Vault, auth.ScopeAdmin, auth.ScopeChat)
	owner := h.keyOf(core.Operator, core.Full, auth.Scopes()...)
	for _, body := range []string{
		`{"label":"a","trust_level":"full"}`, `{"label":"a","trust_level":"vault","scopes":["send"]}`, `{"label":"a","trust_level":"vault","scopes":["chat","metrics"]}`,
		`{"label":"a","trust_level":"sandboxed","user_id":1}`, `{"label":"a","trust_level":"sandboxed","user_id":8}`,
	} {
		h.want(403, "forbidden", admin, "POST", "/api/keys", body)
	}
	for _, body := range []string{
		`{}`, `{"label":"a"}`, `{"trust_level":"vault"}`, `{"label":"a","trust_level":"root"}`, `{"label":"a","trust_level":"vault","scopes":["root"]}`, `{"label":"a","trust_level":"vault","scopes":"chat"}`,
		`{"label":"a","trust_level":"vault","expires_at":"2020-01-01T00:00:00Z"}`, `{"label":"a","trust_level":"vault","expires_at":"soon"}`, `{"label":"a","trust_level":"vault","user_id":"me"}`,
	} {
		h.want(400, "invalid-request", owner, "POST", "/api/keys", body)
	}
	h.want(413, "too-large", owner, "POST", "/api/keys", `{"label":"`+strings.Repeat("x", 500)+`","trust_level":"vault"}`)
	end := h.clock.Now().Add(time.Hour).Format(time.RFC3339)
	res := h.do(admin, "POST", "/api/keys", `{"label":"phone","trust_level":"sandboxed","scopes":["chat"],"expiresAt":"`+end+`","colour":"red"}`)
	if w := res.Header.Get("Warning"); !strings.Contains(w, "colour") {
		t.Errorf("Warning %q", w)
	}
	m := h.answer(res)
	record, _ := m["record"].(map[string]any)
	secret, _ := m["key"].(string)
	if res.StatusCode != 201 || record["user_id"] != 7.0 || record["trust_level"] != "sandboxed" || record["expires_at"] == nil {
		t.Fatalf("%d %v", res.StatusCode, m)
	}
	listed, _ := json.Marshal(h.want(200, "", owner, "GET", "/api/keys", ""))
	if !strings.Contains(string(listed), `"label":"phone"`) || strings.Contains(string(listed), secret[3:]) {
		t.Errorf("the list: %s", listed)
	}
	h.want(403, "forbidden", secret, "GET", "/api/keys", "")
	h.want(200, "", secret, "GET", "/api/chat", "")
	h.want(204, "", admin, "DELETE", "/api/keys/"+record["id"].(string), "")
	h.want(401, "unauthorized", secret, "GET", "/api/chat", "")
	h.want(404, "not-found", admin, "DELETE", "/api/keys/"+record["id"].(string), "")
	rows, err := h.keys.List(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.User == core.Operator {
			h.want(403, "forbidden", admin, "DELETE", "/api/keys/"+r.ID, "")
			h.want(403, "forbidden", admin, "PATCH", "/api/keys/"+r.ID, `{"label":"mine"}`)
		}
	}
}

// TestChangeKey_CannotExceedItsCaller: label and scopes; the
// next request is held against them.
func TestChangeKey_CannotExceedItsCaller(t *testing.T) {
	h := open(t, options{})
	admin := h.keyOf(7, core.Vault, auth.ScopeAdmin, auth.ScopeChat)
	owner := h.keyOf(core.Operator, core.Full, auth.Scopes()...)
	made := func(trust core.Trust, scopes ...string) (string, string) {
		secret, row, err := h.keys.Create(context.Background(), auth.NewKey{Label: "phone", User: 7, Trust: trust, Scopes: scopes}, core.Actor{})
		if err != nil {
			t.Fatal(err)
		}
		return "/api/keys/" + row.ID, secret
	}
	path, secret := made(core.Sandboxed, auth.ScopeChat)
	res := h.do(admin, "PATCH", path, `{"label":"  my\u0000 phone ","scopes":["admin","chat","chat"],"trust_level":"full","user_id":1}`)
	if w := res.Header.Get("Warning"); !strings.Contains(w, "trust_level") || !strings.Contains(w, "user_id") {
		t.Errorf("Warning %q", w)
	}
	m := h.answer(res)
	if res.StatusCode != 200 || m["label"] != "my phone" || len(m["scopes"].([]any)) != 2 || m["trust_level"] != "sandboxed" || m["user_id"] != 7.0 {
		t.Fatalf("%d %v", res.StatusCode, m)
	}
	h.want(200, "", secret, "GET", "/api/keys", "")
	if m = h.want(200, "", admin, "PATCH", path, `{"scopes":[]}`); m["label"] != "my phone" || len(m["scopes"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
	h.want(403, "forbidden", secret, "GET", "/api/keys", "")
	h.want(403, "forbidden", secret, "GET", "/api/chat", "")
	h.want(403, "forbidden", admin, "PATCH", path, `{"scopes":["send"]}`)
	h.want(200, "", admin, "PATCH", path, `{"label":null,"scopes":null}`)
	strong, _ := made(core.Full, auth.ScopeSend)
	h.want(403, "forbidden", admin, "PATCH", strong, `{"scopes":["send","chat"]}`) // above their own trust
	h.want(200, "", admin, "PATCH", strong, `{"scopes":[]}`)                       // less is nothing to guard
	for _, body := range []string{`{"label":" "}`, `{"label":7}`, `{"scopes":["root"]}`, `{"scopes":"chat"}`} {
		h.want(400, "invalid-request", owner, "PATCH", path, body)
	}
	h.want(413, "too-large", owner, "PATCH", path, `{"label":"`+strings.Repeat("x", 500)+`"}`)
	_, others, err := h.keys.Create(context.Background(), auth.NewKey{Label: "theirs", User: 8, Trust: core.Sandboxed, Scopes: []string{auth.ScopeChat}}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	h.want(403, "forbidden", admin, "PATCH", "/api/keys/"+others.ID, `{"scopes":["chat","admin"]}`) // another user's
	h.want(200, "", admin, "PATCH", "/api/keys/"+others.ID, `{"scopes":[]}`)
	h.want(404, "not-found", owner, "PATCH", "/api/keys/nothing", `{"label":"x"}`)
}

// TestRotateKey_CannotExceedItsCaller: nobody gets a secret that opens more than their own.
func TestRotateKey_CannotExceedItsCaller(t *testing.T) {
	h := open(t, options{})
	admin := h.keyOf(7, core.Vault, auth.ScopeAdmin, auth.ScopeChat)
	made := func(trust core.Trust, user int64, scopes ...string) (string, string) {
		secret, row, err := h.keys.Create(context.Background(), auth.NewKey{Label: "phone", User: user, Trust: trust, Scopes: scopes}, core.Actor{})
		if err != nil {
			t.Fatal(err)
		}
		return "/api/keys/" + row.ID + "/rotate", secret
	}
	for name, c := range map[string]struct {
		trust core.Trust
		user  int64
		scope string
	}{"trust": {core.Full, 7, auth.ScopeChat}, "scope": {core.Vault, 7, auth.ScopeSend}, "owner": {core.Vault, core.Operator, auth.ScopeChat}, "another": {core.Sandboxed, 8, auth.ScopeChat}} {
		path, secret := made(c.trust, c.user, c.scope)
		h.want(403, "forbidden", admin, "POST", path, "")
		if _, ok, err := h.keys.Find(t.Context(), secret); !ok || err != nil {
			t.Errorf("%s: the refused rotation changed the secret: %v", name, err)
		}
	}
	path, old := made(core.Sandboxed, 7, auth.ScopeChat)
	m := h.want(200, "", admin, "POST", path, "")
	first, _ := m["key"].(string)
	h.want(401, "unauthorized", old, "GET", "/api/chat", "")
	h.want(200, "", first, "GET", "/api/chat", "")
	until := h.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	m = h.want(200, "", admin, "POST", path, `{"old_expires_at":"`+until+`"}`)
	second, _ := m["key"].(string)
	if record := m["record"].(map[string]any); record["old_expires_at"] == nil {
		t.Errorf("%v", record)
	}
	h.want(200, "", first, "GET", "/api/chat", "")
	h.want(200, "", second, "GET", "/api/chat", "")
	for _, body := range []string{`{"old_expires_at":"soon"}`, `{"old_expires_at":"2020-01-01T00:00:00Z"}`, `{"old_expires_at":"2999-01-01T00:00:00Z"}`, `[]`} {
		h.want(400, "invalid-request", admin, "POST", path, body)
	}
}

// TestAuditLogAndUsageAreFilteredAndForAdminsOnly over HTTP; what they choose is
// tested where they are made.
func TestAuditLogAndUsageAreFilteredAndForAdminsOnly(t *testing.T) {
	h := open(t, options{})
	admin := h.key(auth.ScopeAdmin)
	h.spare(7)
	for i := range 5 {
		if err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
			return store.Audit(context.Background(), tx, core.Actor{User: int64(i % 2), Via: "panel"}, "bot.stop", "one", map[string]any{"n": i})
		}); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(time.Minute)
	}
	page := h.want(200, "", admin, "GET", "/api/audit?action=bot.*&user_id=0&via=panel&subject=one&limit=2", "")
	events := page["events"].([]any)
	if first := events[0].(map[string]any); len(events) != 2 || first["action"] != "bot.stop" || first["detail"].(map[string]any)["n"] != 4.0 {
		t.Errorf("%v", page)
	}
	page = h.want(200, "", admin, "GET", "/api/audit?action=bot.*&user_id=0&limit=2&cursor="+page["next_cursor"].(string), "")
	if events = page["events"].([]any); len(events) != 1 || page["next_cursor"] != "" {
		t.Errorf("%v", page)
	}
	since := h.clock.Now().Add(-90 * time.Second).Format("2006-01-02T15:04:05Z")
	if page = h.want(200, "", admin, "GET", "/api/audit?action=bot.stop&since="+since, ""); len(page["events"].([]any)) != 1 {
		t.Errorf("since %s: %v", since, page)
	}
	for _, bad := range []string{"user_id=ann", "since=yesterday", "until=1", "limit=0", "limit=501", "cursor=x", "subject=" + strings.Repeat("x", 300)} {
		h.want(400, "invalid-request", admin, "GET", "/api/audit?"+bad, "")
	}
	m := h.want(200, "", admin, "GET", "/api/usage?by=user,model", "")
	if f := m["figures"].([]any); len(f) != 1 || f[0].(map[string]any)["cost_usd"] != 1.5 || f[0].(map[string]any)["user_id"] != 7.0 || f[0].(map[string]any)["model"] != "local/quote" {
		t.Errorf("%v", m)
	}
	if f := h.want(200, "", admin, "GET", "/api/usage?user_id=8", "")["figures"].([]any); len(f) != 0 {
		t.Errorf("another person's: %v", f)
	}
	for _, bad := range []string{"by=name", "by=", "since=2026-01-01&until=2020-01-01", "since=2020-01-01", "user_id=x"} {
		h.want(400, "invalid-request", admin, "GET", "/api/usage?"+bad, "")
	}
}
