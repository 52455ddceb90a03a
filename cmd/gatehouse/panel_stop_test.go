package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/configs"
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

// A conversation whose message waits for a place among the runs has a Stop, too.
func TestPanelStopEndsAMessageThatOnlyWaits(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.LimitRuns = 1 })
	model.Script(llmtest.Reply{Text: []string{"here"}}, llmtest.Reply{Text: []string{"partly"}, Hang: true})
	first := w.read(w.open("POST", "/api/chat", map[string]any{"message": "Hello."}, nil))
	session := first.until("session").Data["id"].(string)
	first.until("message_stop")
	hangs := w.read(w.open("POST", "/api/chat", map[string]any{"message": "It takes the place."}, nil))
	other, _ := hangs.until("session").Data["id"].(string)
	hangs.until("text")
	b := w.browser()
	path := "/admin/chats/" + session
	if page := b.page(path); strings.Contains(page, path+"/stop") {
		t.Error("there is something to stop where nothing waits")
	}
	status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "It waits.", "session_id": session}, http.Header{"Prefer": {"respond-async"}})
	if status != 202 {
		t.Fatalf("%d %v", status, m)
	}
	page := b.page(path)
	if !strings.Contains(page, "Stop what waits") {
		t.Errorf("no way to stop it: %.3000s", page)
	}
	if status, page := b.submit(path+"/stop", page, url.Values{}); status != 200 || !strings.Contains(page, "is being stopped") {
		t.Errorf("stop: %d %.500s", status, page)
	}
	if status, page := b.submit(path+"/stop", b.page("/admin/chats/"+other), url.Values{}); !strings.Contains(page, "othing is running in this conversation") {
		t.Errorf("stopped twice: %d %.500s", status, page)
	}
	if status, _ := w.call("POST", "/api/chat/"+other+"/abort", nil); status != 200 {
		t.Error(status)
	}
	hangs.until("aborted")
	all := w.joinAt(session, m["run_id"].(string), "")
	if last := all[len(all)-2].Type; last != "aborted" {
		t.Errorf("it ends with %s", last)
	}
	if n := len(model.Requests()); n != 2 {
		t.Errorf("a model was called %d times, want 2", n)
	}
}
