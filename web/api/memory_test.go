package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/store"
	apimemory "gatehouse/web/api/memory"
	"gatehouse/web/auth"
)

// memories returns a real memory on the harness's database.
func (h *harness) memories() apimemory.Options {
	h.memory = memory.New(memory.Options{DB: h.db, Clock: h.clock})
	return apimemory.Options{Store: h.memory}
}

// remembers has the user have the correction 1, and 2 with an open question.
func (h *harness) remembers(user int64) {
	h.t.Helper()
	ctx := context.Background()
	err := h.db.Tx(ctx, func(tx *store.Tx) error {
		return h.memory.Forget(ctx, tx, &core.Removal{Person: core.Person{User: user}})
	})
	for _, text := range []string{"Correction: I live in Vienna.", "No, it is Canberra."} {
		if err == nil {
			_, err = h.memory.Hear(ctx, memory.Message{User: user, Source: fmt.Sprint(user, text), Text: text, Question: "What is the capital of Australia?", Answer: "Sydney."})
		}
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestMemory_AddFindChangeDeleteAndBringBack(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Sandboxed, auth.ScopeChat)
	made := h.want(201, "", key, "POST", "/api/memory", `{"text":"Always use metric units."}`)
	at := "/api/memory/" + made["correction_id"].(string)
	if made["type"] != "persistent_instruction" || made["scope"] != "global" || made["confidence"] != .85 || made["number"] != 1.0 {
		t.Errorf("%v", made)
	}
	list := func(query string) []any {
		return h.want(200, "", key, "GET", "/api/memory"+query, "")["corrections"].([]any)
	}
	if len(list("?q=METRIC")) != 1 || len(list("?q=imperial")) != 0 {
		t.Error("the search finds other than it should")
	}
	h.want(201, "", key, "POST", "/api/memory", `{"text":"Plot 14 is by the gate.","scope":"project","scope_ref":"p-1"}`)
	if len(list("?project_id=p-1")) != 1 || len(list("?project_id=p-2")) != 0 || len(list("")) != 2 {
		t.Error("the corrections for a project are others")
	}
	h.want(400, "invalid-request", key, "GET", "/api/memory?project_id="+strings.Repeat("x", 300), "")
	changed := h.want(200, "", key, "PATCH", at, `{"text":"Use SI units.","pinned":true}`)
	if changed["corrective_instruction"] != "Use SI units." || changed["pinned"] != true {
		t.Errorf("%v", changed)
	}
	h.want(204, "", key, "DELETE", at, "")
	if len(list("")) != 1 || len(list("?status=deleted")) != 1 {
		t.Error("it was not deleted")
	}
	h.want(409, "conflict", key, "PATCH", at, `{"pinned":false}`)
	h.want(200, "", key, "PATCH", at, `{"status":"active"}`)
	events := h.want(200, "", key, "GET", at+"/events", "")["events"].([]any)
	if len(events) != 4 || events[0].(map[string]any)["kind"] != "restored" {
		t.Errorf("%v", events)
	}
}

func TestMemory_ConfirmReplacesTheOlder(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Sandboxed, auth.ScopeChat)
	old := h.want(201, "", key, "POST", "/api/memory", `{"text":"Always answer in German."}`)
	made := h.want(201, "", key, "POST", "/api/memory", `{"text":"Always answer in English."}`)
	if made["card"] != "conflict" || made["conflicts_with"] != old["correction_id"] {
		t.Fatalf("%v", made)
	}
	if open := h.want(200, "", key, "GET", "/api/memory?status=open", "")["corrections"].([]any); len(open) != 1 {
		t.Errorf("%v", open)
	}
	body := `{"correction_id":"` + made["correction_id"].(string) + `","choice":"replace"}`
	h.want(200, "", key, "POST", "/api/memory/confirm", body)
	h.want(409, "conflict", key, "POST", "/api/memory/confirm", body)
	gone := h.want(200, "", key, "GET", "/api/memory?status=superseded", "")["corrections"].([]any)
	if len(gone) != 1 || gone[0].(map[string]any)["scope"] != "superseded" {
		t.Errorf("%v", gone)
	}
}

func TestMemory_OnlyTheCallersOwn(t *testing.T) {
	h := open(t, options{})
	own, other := h.keyOf(core.Operator, core.Full, auth.ScopeChat), h.keyOf(7, core.Full, auth.ScopeChat)
	made := h.want(201, "", own, "POST", "/api/memory", `{"text":"I live in Vienna."}`)
	at := "/api/memory/" + made["correction_id"].(string)
	h.want(404, "not-found", other, "PATCH", at, `{"pinned":true}`)
	h.want(404, "not-found", other, "DELETE", at, "")
	h.want(404, "not-found", other, "GET", at+"/events", "")
	h.want(404, "not-found", other, "POST", "/api/memory/confirm", `{"correction_id":"`+made["correction_id"].(string)+`","choice":"skip"}`)
	if list := h.want(200, "", other, "GET", "/api/memory", "")["corrections"].([]any); len(list) != 0 {
		t.Errorf("%v", list)
	}
}

func TestMemory_BadInputSaysWhy(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Sandboxed, auth.ScopeChat)
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/api/memory", `{}`, 400, "text is missing"},
		{"/api/memory", `{"text":"the password is hunter2"}`, 400, "a password"},
		{"/api/memory", `{"text":"x","type":"poem"}`, 400, "type must be"},
		{"/api/memory", `{"text":"x","scope":"project"}`, 400, "scope_ref"},
		{"/api/memory", `{"text":"` + strings.Repeat("x", 501) + `"}`, 413, "500"},
		{"/api/memory/confirm", `{"choice":"save"}`, 400, "correction_id"},
		{"/api/memory/confirm", `{"correction_id":"x","choice":"perhaps"}`, 400, "choice must be"},
	} {
		if got := h.want(c.status, "", key, "POST", c.path, c.body); !strings.Contains(got["detail"].(string), c.says) {
			t.Errorf("%s %.60s: %v", c.path, c.body, got)
		}
	}
}
