package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/auth"
)

// The same Idempotency-Key means the same run, also for two clients at once
// and after a restart.
func TestAnIdempotencyKeyHoldsForTwoAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	h := http.Header{"Idempotency-Key": {"order-4711"}, "Accept": {"application/json"}}
	send := func() (run, response string) {
		resp := w.open("POST", "/api/chat", map[string]any{"message": "Only once."}, h)
		defer resp.Body.Close()
		var reply struct {
			RunID    string `json:"run_id"`
			Response string
		}
		if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || resp.StatusCode != 200 {
			t.Errorf("%d %v", resp.StatusCode, err)
		}
		return reply.RunID, reply.Response
	}
	var mu sync.Mutex
	runs := map[string]int{}
	note := func() {
		run, response := send()
		mu.Lock()
		defer mu.Unlock()
		if runs[run]++; response != fakeSays {
			t.Errorf("the response: %q", response)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(note)
	}
	wg.Wait()
	w.stop()
	w.start()
	defer w.stop()
	note()
	if status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "Something else."}, h); status != 409 || m["type"] != "/docs/problems/conflict" {
		t.Errorf("another body under it, after the restart: %d %v", status, m)
	}
	note()
	if len(runs) != 1 || model.Total() != 1 {
		t.Errorf("runs %v, %d calls of the model", runs, model.Total())
	}
}

// Two turns of one session run one after the other; each client sees its own.
func TestTwoTurnsOfOneSessionRunInOrderAndEachClientSeesItsOwn(t *testing.T) {
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"first"}, Hang: true}, llmtest.Say("second"))
	first := w.open("POST", "/api/chat", map[string]any{"message": "one", "session_id": "both"}, nil)
	defer first.Body.Close()
	head := readEvents(t, first.Body, 6)
	second := w.open("POST", "/api/chat", map[string]any{"message": "two", "session_id": "both"}, nil)
	defer second.Body.Close()
	session := head[0].Data["id"].(string)
	if status, _ := w.call("POST", "/api/chat/"+session+"/abort", nil); status != 200 {
		t.Fatal(status)
	}
	rest := readEvents(t, first.Body, -1)
	checkOrder(t, append(head, rest...))
	es := readEvents(t, second.Body, -1)
	checkOrder(t, es)
	if es[1].Data["content"] != "two" || es[len(es)-2].Data["response"] != "second" || es[0].Data["id"] != session {
		t.Errorf("the second: %v", es)
	}
	rs := model.Requests()
	var told []string
	for _, m := range rs[len(rs)-1].Messages {
		if m.Role != "system" {
			told = append(told, m.Role+": "+m.Content)
		}
	}
	if got := strings.Join(told, "|"); got != "user: one|assistant: first|user: two" {
		t.Errorf("the model was told %q", got)
	}
}

// While the gateway stops, new turns are refused with a word that says so,
// and nothing is left half taken.
func TestAStoppingGatewayRefusesNewTurns(t *testing.T) {
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"part"}, Hang: true})
	running := w.open("POST", "/api/chat", map[string]any{"message": "one"}, nil)
	defer running.Body.Close()
	head := readEvents(t, running.Body, 6)
	go w.stop()
	w.logged("stopping")
	status, body := 0, ""
	w.until("it refuses", func() bool {
		status, body = w.call("POST", "/api/chat", map[string]any{"message": "two"})
		return status != 200
	})
	if status != 503 || !strings.Contains(body, "stopping") {
		t.Errorf("%d %s", status, body)
	}
	w.app.running.Abort(head[0].Data["id"].(string))
	if end := readEvents(t, running.Body, -1); len(end) == 0 || end[0].Type != "aborted" {
		t.Errorf("the running turn's end: %v", end)
	}
}

// What was talked about stands in the list of sessions, of one's own only.
func TestSessionsAreListedForWhoeverOwnsThem(t *testing.T) {
	w, _ := newModelWorld(t, nil)
	w.guest("Ada")
	w.chatEvents(map[string]any{"message": "My very own question"}, nil)
	status, body := w.call("GET", "/api/chat", nil)
	if status != 200 || !strings.Contains(body, "My very own question") {
		t.Errorf("the operator's list: %d %s", status, body)
	}
	secret, _, err := w.app.keys.Create(context.Background(), guestKey, cli)
	if err != nil {
		t.Fatal(err)
	}
	resp := w.open("GET", "/api/chat", nil, http.Header{"Authorization": {"Bearer " + secret}})
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || strings.Contains(string(b), "My very own question") {
		t.Errorf("another person's list: %d %s", resp.StatusCode, b)
	}
}

var guestKey = auth.NewKey{Label: "guest", User: 2, Trust: core.Sandboxed, Scopes: []string{"chat", "read"}}
