package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// others has a session of Ada with one message, and how to ask with keys of the operator.
type others struct {
	*world
	session string
}

func newOthers(t *testing.T) *others {
	t.Helper()
	w, _ := newModelWorld(t, nil)
	ada := w.lend()
	status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "Hers."}, http.Header{"Authorization": ada.header["Authorization"], "Accept": {"application/json"}})
	if status != 200 {
		t.Fatal(status, m)
	}
	return &others{w, m["session_id"].(string)}
}

// key is a key of the operator with these scopes.
func (o *others) key(scopes ...string) http.Header {
	return http.Header{"Authorization": {"Bearer " + o.newKey(core.Vault, scopes...)}, "Accept": {"application/json"}, "If-Match": {"*"}}
}

// reads are the requests that show a session, each of which answers at once.
func (o *others) reads() []string {
	at := "/api/chat/" + o.session
	return []string{at, at + "/messages", at + "/export.md", at + "/tags", at + "/contexts", at + "/stream-status",
		at + "/events?run=" + o.lastRun(o.session), "/api/sessions/" + o.session + "/handoff", "/api/chat/session/" + o.session}
}

// covered lists the sessions whose coverage by notes is shown.
func (o *others) covered(key http.Header) (ids []string) {
	o.t.Helper()
	_, m, _ := o.asked("GET", "/api/context/backups/coverage", nil, key)
	for _, c := range m["coverage"].([]any) {
		ids = append(ids, c.(map[string]any)["session_id"].(string))
	}
	return ids
}

// The operator's key is bound by its scopes like any other: without admin it reaches the
// operator's own sessions only, also by id.
func TestAnOperatorsKeyWithoutAdminReachesNoOneElsesSession(t *testing.T) {
	t.Parallel()
	o := newOthers(t)
	_, mine := o.chatEvents(map[string]any{"message": "Mine."}, nil)
	own := mine[0].Data["id"].(string)
	script := o.key(auth.ScopeChat, auth.ScopeRead)
	for _, path := range o.reads() {
		if status := o.status(script, "GET", path, nil); status != 404 {
			t.Errorf("GET %s: %d, want 404", path, status)
		}
	}
	if status := o.status(script, "GET", "/api/chat/"+own, nil); status != 200 {
		t.Errorf("its own: %d", status)
	}
	at := "/api/chat/" + o.session
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/api/chat", map[string]any{"message": "And I.", "session_id": o.session}},
		{"POST", "/api/chat", map[string]any{"message": "And I.", "continued_from": o.session}},
		{"POST", "/api/chat/stream", map[string]any{"message": "And I.", "session_id": o.session}},
		{"PATCH", at, map[string]any{"title": "Taken"}},
		{"POST", at + "/archive", nil},
		{"POST", at + "/abort", nil},
		{"POST", at + "/tags", map[string]any{"tag": "taken"}},
		{"POST", "/api/chat/session/" + o.session + "/archive", nil},
		{"POST", "/api/context/backups/run", map[string]any{"session_id": o.session}},
		{"DELETE", "/api/chat/session/" + o.session, nil},
		{"DELETE", at, nil},
	} {
		if status := o.status(script, c.method, c.path, c.body); status != 404 {
			t.Errorf("%s %s: %d, want 404", c.method, c.path, status)
		}
	}
	if n := o.count(`SELECT count(*) FROM sessions WHERE id = $1 AND archived = 0 AND message_count = 2 AND title <> 'Taken'`, o.session); n != 1 {
		t.Error("it was changed")
	}
	if covered := o.covered(script); slices.Contains(covered, o.session) || !slices.Contains(covered, own) {
		t.Errorf("coverage of %v", covered)
	}
	all := o.key(auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin)
	if covered := o.covered(all); !slices.Contains(covered, o.session) {
		t.Errorf("with admin coverage of %v", covered)
	}
	for _, path := range o.reads() {
		if status := o.status(all, "GET", path, nil); status == 404 && !strings.HasSuffix(path, "/handoff") {
			t.Errorf("with admin GET %s: %d", path, status)
		}
	}
	if status := o.status(all, "POST", "/api/chat", map[string]any{"message": "And I.", "session_id": o.session}); status != 200 {
		t.Errorf("with admin it goes on: %d", status)
	}
	if status := o.status(all, "DELETE", at, nil); status != 204 {
		t.Errorf("with admin it deletes: %d", status)
	}
}

// The scope admin is for bots, requests and keys: what other users said needs read beside it,
// by id as in lists.
func TestTheScopeAdminAloneReadsNoOneElsesSession(t *testing.T) {
	t.Parallel()
	o := newOthers(t)
	for _, user := range []int64{core.Operator, 8} {
		if user != core.Operator {
			o.exec(`INSERT INTO users (id, display, role, created_at) VALUES (8, 'Bea', 'admin', '')`)
		}
		secret, _ := o.keyFor(user, core.Vault, auth.ScopeChat, auth.ScopeAdmin)
		admin := http.Header{"Authorization": {"Bearer " + secret}}
		for _, path := range append(o.reads(), "/api/chat/"+o.session+"/transcript") {
			if status := o.status(admin, "GET", path, nil); status != 404 {
				t.Errorf("user %d: GET %s: %d, want 404", user, path, status)
			}
		}
		at := "/api/chat/" + o.session
		for _, c := range []struct {
			method, path string
			body         any
		}{
			{"PATCH", at, map[string]any{}},
			{"DELETE", at + "/tags/taken", nil},
			{"DELETE", at + "/tags/" + o.session, nil},
			{"DELETE", at + "/contexts", map[string]any{}},
			{"POST", at + "/archive", nil},
			{"POST", at + "/tags", map[string]any{"tag": "taken"}},
			{"POST", "/api/chat", map[string]any{"message": "What was said?", "continued_from": o.session}},
		} {
			if status := o.status(admin, c.method, c.path, c.body); status != 404 {
				t.Errorf("user %d: %s %s: %d, want 404", user, c.method, c.path, status)
			}
		}
		if status := o.status(admin, "POST", "/api/chat", map[string]any{"message": "What was said?", "session_id": o.session}); user == core.Operator && status != 404 {
			t.Errorf("the operator goes on with it: %d, want 404", status)
		}
		if status := o.status(admin, "POST", at+"/abort", nil); status == 404 {
			t.Errorf("user %d may not stop its turn", user)
		}
		secret, _ = o.keyFor(user, core.Vault, auth.ScopeRead, auth.ScopeAdmin)
		if status := o.status(http.Header{"Authorization": {"Bearer " + secret}}, "GET", "/api/chat/"+o.session, nil); status != 200 {
			t.Errorf("user %d: with read: %d", user, status)
		}
		if user != core.Operator {
			if status := o.status(admin, "DELETE", at, nil); status != 204 {
				t.Errorf("user %d may not delete it: %d", user, status)
			}
		}
	}
}

// What docs/api.md says of admin with read: only the owner's keys continue what others began.
func TestAKeyOfAnAdminChangesSessionsOfOthersButDoesNotContinueThem(t *testing.T) {
	t.Parallel()
	o := newOthers(t)
	o.exec(`INSERT INTO users (id, display, role, created_at) VALUES (8, 'Bea', 'admin', '')`)
	secret, _ := o.keyFor(8, core.Vault, auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin)
	admin := http.Header{"Authorization": {"Bearer " + secret}, "Accept": {"application/json"}, "If-Match": {"*"}}
	if status := o.status(admin, "PATCH", "/api/chat/"+o.session, map[string]any{"title": "Changed"}); status != 200 {
		t.Errorf("it is not changed: %d", status)
	}
	for _, path := range []string{"/api/chat", "/api/chat/stream"} {
		if status := o.status(admin, "POST", path, map[string]any{"message": "And I.", "session_id": o.session}); status != 404 {
			t.Errorf("POST %s: %d, want 404", path, status)
		}
	}
	if n := o.count(`SELECT count(*) FROM sessions WHERE id = $1 AND message_count = 2 AND title = 'Changed'`, o.session); n != 1 {
		t.Error("it was continued")
	}
	if status := o.status(o.key(auth.ScopeChat, auth.ScopeRead, auth.ScopeAdmin), "POST", "/api/chat", map[string]any{"message": "And I.", "session_id": o.session}); status != 200 {
		t.Errorf("the owner's key does not continue it: %d", status)
	}
	docs, err := os.ReadFile("../../docs/api.md")
	if want := "sessions of other users, also to change them, and with a key of the owner to continue them"; err != nil || !strings.Contains(string(docs), want) {
		t.Errorf("docs/api.md does not state %q, %v", want, err)
	}
}
