package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"gatehouse/core/llm/llmtest"
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

func TestASessionThatRunsIsNotDeletedAndADeletedOneIsBegunAnew(t *testing.T) {
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
