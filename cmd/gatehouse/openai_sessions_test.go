package main

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
)

// TestARequestOfOpenAIsProtocolLeavesNoSessionInTheLists but the one that asks
// for such, where it can be read, and deleted.
func TestARequestOfOpenAIsProtocolLeavesNoSessionInTheLists(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorldIn(t)
	if resp, c := w.complete(map[string]any{"model": fakeModel, "messages": user("hello")}); resp.StatusCode != 200 || len(c.Choices) != 1 {
		t.Fatal(resp.Status, c)
	}
	w.read(w.open("POST", "/api/chat", map[string]any{"message": "hello"}, nil)).until("message_stop")
	list := func(query string) []any {
		t.Helper()
		_, m, _ := w.asked("GET", "/api/chat"+query, nil, nil)
		return m["sessions"].([]any)
	}
	if all := list(""); len(all) != 1 || all[0].(map[string]any)["module"] != "chat" {
		t.Errorf("the list: %v", all)
	}
	one := list("?module=openai")
	if len(one) != 1 {
		t.Fatalf("the list of such: %v", one)
	}
	id := one[0].(map[string]any)["id"].(string)
	if status, m, _ := w.asked("GET", "/api/chat/"+id, nil, nil); status != 200 || m["message_count"] != 2.0 {
		t.Errorf("it reads %d %v", status, m)
	}
	if status, body := w.call("DELETE", "/api/chat/"+id, nil); status != 204 {
		t.Errorf("delete: %d %s", status, body)
	}
	// Nobody goes on with such a session: it goes with the archived ones.
	if resp, _ := w.complete(map[string]any{"model": fakeModel, "messages": user("hello again")}); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	w.quiet()
	err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE sessions SET last_accessed = $1`, core.Stamp(w.app.clock.Now().AddDate(0, 0, -31)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.app.cfg.RetentionDays = 30
	if n, err := w.app.conversations.clean(t.Context()); n != 1 || err != nil || len(list("?module=openai")) != 0 || len(list("")) != 1 {
		t.Errorf("%d went, %v; %v", n, err, list(""))
	}
}
