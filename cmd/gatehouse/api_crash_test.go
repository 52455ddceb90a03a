package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gatehouse/core/llm/llmtest"
)

// key is the operator's key of the running program.
func (h *home) key() string {
	h.t.Helper()
	keys, _ := filepath.Glob(filepath.Join(h.dir, "run", "*", "key"))
	if len(keys) != 1 {
		h.t.Fatal("keys: ", keys)
	}
	b, err := os.ReadFile(keys[0])
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (h *home) open(p *proc, method, path, body string, header http.Header) *http.Response {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, "http://"+p.addr()+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Authorization", "Bearer "+h.key())
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

// After a crash the client that comes back learns that its run was
// interrupted: it is not run again unless it was asked for with Prefer:
// respond-async. A chat's message is answered.
func TestAfterACrashAPIRunsAreInterruptedAndChatsAreAnswered(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	model := llmtest.New(t, llmtest.Options{})
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"], h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = "open", model.URL(), fakeModel
	p := h.serve(nil)
	model.Script(llmtest.Reply{Text: []string{"part"}, Hang: true}, llmtest.Reply{HangHead: true}, llmtest.Reply{HangHead: true})
	resp := h.open(p, "POST", "/api/chat", `{"message": "Go."}`, nil)
	head := readEvents(t, resp.Body, 6)
	later := h.open(p, "POST", "/api/chat", `{"message": "When you can."}`, http.Header{"Prefer": {"respond-async"}})
	var accepted struct {
		SessionID string `json:"session_id"`
		RunID     string `json:"run_id"`
	}
	if err := json.NewDecoder(later.Body).Decode(&accepted); err != nil || later.StatusCode != 202 {
		t.Fatal(later.StatusCode, err)
	}
	later.Body.Close()
	ada := sim.NewUser("Ada")
	asked := ada.Send("hello?")
	ctx, cancel := contextWithPatience(t)
	defer cancel()
	if err := model.Await(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.end()
	_ = readEvents(t, resp.Body, -1)
	resp.Body.Close()

	p = h.serve(nil)
	session, run := head[0].Data["id"].(string), head[0].Data["run_id"].(string)
	join := func(session, run, last string) []sseEvent {
		t.Helper()
		resp := h.open(p, "GET", "/api/chat/"+session+"/events?run="+run, "", http.Header{"Last-Event-Id": {last}})
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("join: %d", resp.StatusCode)
		}
		return readEvents(t, resp.Body, -1)
	}
	es := join(session, run, head[0].ID)
	got := types(es)
	if len(es) < 2 || got[len(got)-1] != "message_stop" || got[len(got)-2] != "error" || es[len(es)-2].Data["code"] != "interrupted" {
		t.Errorf("the interrupted run's reader gets %v: %v", got, es)
	}
	if slices.Contains(got, "text") && got[0] == "gap" {
		t.Errorf("an interrupted run said something: %v", got)
	}
	es = join(accepted.SessionID, accepted.RunID, "")
	if got := types(es); len(es) < 2 || got[len(got)-2] != "done" || es[len(es)-2].Data["response"] != fakeSays {
		t.Errorf("the run that was asked for with respond-async: %v", got)
	}
	hear(t, sim, ada.DM(), asked.ID, fakeSays)
	if n := model.Total(); n != 5 {
		t.Errorf("%d calls of the model, want 3 and 2 again", n)
	}
}

// A turn that was taken (202) and has not begun can be followed after a restart, also the first
// one of its session; and it survives a stop that is out of patience.
func TestATurnThatWasTakenCanBeFollowedAfterARestart(t *testing.T) {
	t.Parallel()
	asked, again := make(chan struct{}, 10), make(chan struct{})
	model := llmtest.New(t, llmtest.Options{Choose: func(llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		<-again
		return llmtest.Say(fakeSays)
	}})
	answer := sync.OnceFunc(func() { close(again) })
	t.Cleanup(answer)
	h := newHome(t, nil)
	h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = model.URL(), fakeModel
	h.env["GATEHOUSE_LIMIT_RUNS"], h.env["GATEHOUSE_DRAIN_TIMEOUT"] = "1", "1s"
	p := h.serve(nil)
	take := func(message, session string) (location string) {
		t.Helper()
		resp := h.open(p, "POST", "/api/chat", `{"message": "`+message+`", "session_id": "`+session+`"}`, http.Header{"Prefer": {"respond-async"}})
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode)
		}
		return resp.Header.Get("Location")
	}
	taken := []string{take("It runs.", "one")}
	<-asked
	taken = append(taken, take("It waits behind the first.", "one"), take("It waits for the one place.", "two"))
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.end(); code != exitClean {
		t.Fatalf("exit code %d", code)
	}
	p = h.serve(nil)
	var streams []*http.Response
	for _, location := range taken { // two of them have not begun
		resp := h.open(p, "GET", location, "", nil)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("its events: %d", resp.StatusCode)
		}
		streams = append(streams, resp)
	}
	answer()
	for _, resp := range streams {
		es := readEvents(t, resp.Body, -1)
		if got := types(es); len(es) < 2 || got[len(got)-2] != "done" {
			t.Errorf("%v", got)
		}
	}
}

// What its user has stopped while it waits is not asked of a model because the gateway was restarted.
func TestATurnThatIsAbortedWhileItWaitsIsNotAnsweredAfterARestart(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	model := llmtest.New(t, llmtest.Options{Choose: func(llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		return llmtest.Reply{Hang: true}
	}})
	h := newHome(t, nil)
	h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = model.URL(), fakeModel
	h.env["GATEHOUSE_LIMIT_RUNS"], h.env["GATEHOUSE_DRAIN_TIMEOUT"] = "1", "1s"
	p := h.serve(nil)
	post := func(path, body string, status int) http.Header {
		t.Helper()
		resp := h.open(p, "POST", path, body, http.Header{"Prefer": {"respond-async"}})
		defer resp.Body.Close()
		if resp.StatusCode != status {
			t.Fatal(path, resp.StatusCode)
		}
		return resp.Header
	}
	post("/api/chat", `{"message": "It runs.", "session_id": "one"}`, http.StatusAccepted)
	<-asked
	waits := post("/api/chat", `{"message": "It waits.", "session_id": "two"}`, http.StatusAccepted)
	post("/api/chat/two/abort?run="+waits.Get("X-Run-Id"), "", http.StatusOK)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.end(); code != exitClean {
		t.Fatalf("exit code %d", code)
	}
	p = h.serve(nil)
	<-asked // the first has the one place again
	post("/api/chat/one/abort", "", http.StatusOK)
	resp := h.open(p, "GET", waits.Get("Location"), "", nil)
	defer resp.Body.Close()
	es := readEvents(t, resp.Body, -1)
	if got := types(es); len(got) < 2 || got[len(got)-2] != "aborted" {
		t.Errorf("%v", got)
	}
	if n := model.Total(); n != 2 {
		t.Errorf("a model was asked %d times, want twice for the first", n)
	}
}
