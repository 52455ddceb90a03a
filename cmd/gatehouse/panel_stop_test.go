package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/core/llm/llmtest"
)

// Stop in the panel ends the answer that is being made and those whose messages wait behind it,
// for which no model is called; what is asked later is answered.
func TestPanelStopEndsTheMessagesThatWaitToo(t *testing.T) {
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"partly"}, Hang: true})
	resp := w.open("POST", "/api/chat", map[string]any{"message": "First."}, nil)
	defer resp.Body.Close()
	head := readEvents(t, resp.Body, 6)
	session := head[0].Data["id"].(string)
	queue := func(text string) (run string) {
		t.Helper()
		status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": text, "session_id": session}, http.Header{"Prefer": {"respond-async"}})
		if status != 202 {
			t.Fatalf("%d %v", status, m)
		}
		return m["run_id"].(string)
	}
	end := func(run string) string {
		t.Helper()
		all := w.joinAt(session, run, "")
		return all[len(all)-2].Type
	}
	waits := []string{queue("Second."), queue("Third.")}
	b := w.browser()
	path := "/admin/chats/" + session
	if status, page := b.submit(path+"/stop", b.page(path), url.Values{}); status != 200 || !strings.Contains(page, "is being stopped") {
		t.Errorf("stop: %d %.500s", status, page)
	}
	rest := readEvents(t, resp.Body, -1)
	if last := rest[len(rest)-2].Type; last != "aborted" {
		t.Errorf("the answer that was being made ends with %s", last)
	}
	for i, run := range waits {
		if last := end(run); last != "aborted" {
			t.Errorf("message %d that waited ends with %s", i+1, last)
		}
	}
	if n := len(model.Requests()); n != 1 {
		t.Errorf("a model was called %d times, want 1", n)
	}
	model.Script(llmtest.Reply{Text: []string{"here"}})
	if last := end(queue("Fourth.")); last != "done" {
		t.Errorf("a later message ends with %s", last)
	}
	w.quiet()
	if status, page := b.submit(path+"/stop", b.page(path), url.Values{}); !strings.Contains(page, "othing is running in this conversation") {
		t.Errorf("stop of nothing: %d %.500s", status, page)
	}
}
