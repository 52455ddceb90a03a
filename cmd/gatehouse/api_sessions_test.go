package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store"
)

// asked is an answer as JSON, with its status.
func (w *world) asked(method, path string, body any, header http.Header) (int, map[string]any, http.Header) {
	w.t.Helper()
	resp := w.open(method, path, body, header)
	defer resp.Body.Close()
	var m map[string]any
	if resp.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
			w.t.Fatalf("%s %s: %s: %v", method, path, resp.Status, err)
		}
	}
	return resp.StatusCode, m, resp.Header
}

// spoken is who said what in a session, as the API tells it.
func spoken(m map[string]any) (out []string) {
	for _, one := range m["messages"].([]any) {
		one := one.(map[string]any)
		for _, b := range one["content"].([]any) {
			if text, ok := b.(map[string]any)["text"].(string); ok {
				out = append(out, one["role"].(string)+": "+text)
			}
		}
	}
	return out
}

func TestOneConversationIsUsedInChatAndOverTheAPI(t *testing.T) {
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	w.replies(boss, "hello")
	w.quiet()
	_, list, _ := w.asked("GET", "/api/chat?source=telegram", nil, nil)
	id := list["sessions"].([]any)[0].(map[string]any)["id"].(string)
	path := "/api/chat/" + id
	_, before, header := w.asked("GET", path, nil, nil)
	model.Script(llmtest.Say("Over the API."), llmtest.Say("In the chat."))
	if status, reply, _ := w.asked("POST", "/api/chat", map[string]any{"message": "from a program", "session_id": id}, wantJSON); status != 200 || reply["session_id"] != id {
		t.Fatalf("%d %v", status, reply)
	}
	// The turn in between does not stand in the way of a change, and the
	// change's title stays what it is with the next turn.
	status, now, _ := w.asked("PATCH", path, map[string]any{"title": "Garden", "archived": true}, http.Header{"If-Match": {header.Get("ETag")}})
	if status != 200 {
		t.Fatalf("%d %v", status, now)
	}
	w.replies(boss, "from the chat")
	w.quiet()
	_, after, _ := w.asked("GET", path, nil, nil)
	said := spoken(after)[len(spoken(before)):]
	if want := []string{"user: from a program", "assistant: Over the API.", "user: from the chat", "assistant: In the chat."}; !slices.Equal(said, want) {
		t.Errorf("said %q", said)
	}
	if after["title"] != "Garden" || after["title_source"] != "user" || after["archived"] != true {
		t.Errorf("%v", after)
	}
}

func TestASessionThatRunsIsNotDeletedAndADeletedOneIsBegunAgain(t *testing.T) {
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	w.replies(boss, "hello")
	w.quiet()
	_, list, _ := w.asked("GET", "/api/chat?source=telegram", nil, nil)
	id := list["sessions"].([]any)[0].(map[string]any)["id"].(string)
	path := "/api/chat/" + id
	model.Script(llmtest.Reply{Text: []string{"first"}, Hang: true})
	r := w.read(w.open("POST", "/api/chat", map[string]any{"message": "long work", "session_id": id}, nil))
	r.until("text")
	if status, m, _ := w.asked("DELETE", path, nil, nil); status != 409 {
		t.Errorf("deleted in the middle of a run: %d %v", status, m)
	}
	if status, _, _ := w.asked("POST", path+"/abort", nil, nil); status != 200 {
		t.Errorf("abort: %d", status)
	}
	r.until("message_stop")
	w.quiet()
	w.exec(`INSERT INTO tool_grants (id, session_id, user_id, trust, kind, pattern, ask, granted_by, created_at) VALUES ('g', $1, 1, 'vault', 'write', 'A/*', 'x', 'operator', '2026-01-01T00:00:00.000000Z')`, id)
	if status, m, _ := w.asked("DELETE", path, nil, nil); status != 204 {
		t.Fatalf("%d %v", status, m)
	}
	if status, _, _ := w.asked("GET", path, nil, nil); status != 404 {
		t.Errorf("it is still there: %d", status)
	}
	if n := w.count(`SELECT (SELECT count(*) FROM tool_grants WHERE session_id = $1) + (SELECT count(*) FROM chats WHERE session_id = $1)`, id); n != 0 {
		t.Errorf("%d rows still name it", n)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'session.delete' AND subject = $1`, id); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	w.replies(boss, "hello again")
	w.quiet()
	if n := w.count(`SELECT count(*) FROM chats WHERE session_id IS NOT NULL AND session_id <> $1`, id); n != 1 {
		t.Errorf("the chat has %d new conversations", n)
	}
}

// What was said in a chat is found over the API at once, by those alone whose it is.
func TestWhatWasSaidInAChatIsFoundOverTheAPI(t *testing.T) {
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("The kettle is in the cupboard."), llmtest.Say("A guest's answer."))
	boss := w.boss()
	w.replies(boss, "Where is the kettle?")
	w.quiet()
	find := func(words string) []any {
		t.Helper()
		status, list, _ := w.asked("GET", "/api/chat?search="+url.QueryEscape(words), nil, nil)
		if status != 200 {
			t.Fatalf("%d %v", status, list)
		}
		return list["sessions"].([]any)
	}
	found := find(`"Cupboard*`)
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	session := found[0].(map[string]any)
	hit := session["hit"].(map[string]any)
	if hit["in"] != "text" || hit["excerpt"] != "The kettle is in the cupboard." || hit["role"] != "assistant" {
		t.Errorf("%v", hit)
	}
	_, page, _ := w.asked("GET", "/api/chat/"+session["id"].(string)+"/messages", nil, nil)
	messages := page["messages"].([]any)
	if last := messages[len(messages)-1].(map[string]any); last["id"] != hit["message_id"] {
		t.Errorf("the hit is of %v, the message of %v", hit["message_id"], last["id"])
	}
	if status, problem, _ := w.asked("GET", "/api/chat?search=kettle&offset=5", nil, nil); status != 400 {
		t.Errorf("%d %v", status, problem)
	}
	if status, _, _ := w.asked("DELETE", "/api/chat/"+session["id"].(string), nil, nil); status != 204 {
		t.Fatalf("%d", status)
	}
	if found := find("kettle"); len(found) != 0 {
		t.Errorf("a deleted session is found: %v", found)
	}
}

func TestArchivedSessionsGoAfterTheRetentionTimeAndOthersStay(t *testing.T) {
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	ctx := context.Background()
	w.replies(boss, "hello")
	w.quiet()
	var ids []string
	for _, text := range []string{"one", "two"} {
		_, reply, _ := w.asked("POST", "/api/chat", map[string]any{"message": text}, wantJSON)
		ids = append(ids, reply["session_id"].(string))
	}
	old, running := ids[0], ids[1]
	for _, id := range ids {
		if status, m, _ := w.asked("POST", "/api/chat/"+id+"/archive", nil, nil); status != 200 {
			t.Fatal(m)
		}
	}
	model.Script(llmtest.Reply{Text: []string{"first"}, Hang: true})
	r := w.read(w.open("POST", "/api/chat", map[string]any{"message": "long work", "session_id": running}, nil))
	r.until("text")
	defer w.asked("POST", "/api/chat/"+running+"/abort", nil, nil)
	err := w.app.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET last_accessed = $1`, core.Stamp(w.app.clock.Now().AddDate(0, 0, -31)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.app.conversations.clean(ctx); n != 0 || err != nil {
		t.Errorf("without the setting %d went, %v", n, err)
	}
	w.app.cfg.RetentionDays = 30
	if n, err := w.app.conversations.clean(ctx); n != 1 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	_, list, _ := w.asked("GET", "/api/chat", nil, nil)
	if left := list["sessions"].([]any); len(left) != 2 {
		t.Errorf("%d are left: %v", len(left), left)
	}
	if status, _, _ := w.asked("GET", "/api/chat/"+old, nil, nil); status != 404 {
		t.Errorf("the old one: %d", status)
	}
}
