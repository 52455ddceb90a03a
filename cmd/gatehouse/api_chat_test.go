package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/auth"
)

// A sseEvent is one event as a client reads it.
type sseEvent struct {
	ID   string
	Type string
	Data map[string]any
}

// readEvents reads up to n events (n < 0: until the stream ends).
func readEvents(t testing.TB, r io.Reader, n int) (out []sseEvent) {
	t.Helper()
	s := bufio.NewScanner(r)
	s.Buffer(nil, 4<<20)
	var e sseEvent
	for n < 0 || len(out) < n {
		if !s.Scan() {
			return out
		}
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "id: "):
			e.ID = line[4:]
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), &e.Data); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			e.Type, _ = e.Data["type"].(string)
		case line == "" && e.Type != "":
			out = append(out, e)
			e = sseEvent{}
		case strings.HasPrefix(line, "event:"):
			t.Errorf("a line that clients do not expect: %q", line)
		}
	}
	return out
}

func types(es []sseEvent) (out []string) {
	for _, e := range es {
		out = append(out, e.Type)
	}
	return out
}

func ids(es []sseEvent) (out []string) {
	for _, e := range es {
		out = append(out, e.ID)
	}
	return out
}

// checkOrder holds a whole stream against the documented order.
func checkOrder(t *testing.T, es []sseEvent) {
	t.Helper()
	head := []string{"session", "user_message", "prompt_metadata", "init", "model"}
	got := types(es)
	if len(got) < len(head)+2 || !slices.Equal(got[:len(head)], head) {
		t.Fatalf("the stream begins with %v", got)
	}
	terminals := 0
	for _, typ := range got {
		if typ == "done" || typ == "aborted" || typ == "error" {
			terminals++
		}
	}
	if terminals != 1 || got[len(got)-1] != "message_stop" || !slices.Contains([]string{"done", "aborted", "error"}, got[len(got)-2]) {
		t.Errorf("the stream ends wrongly: %v", got)
	}
	for i, e := range es {
		if want := fmt.Sprintf("%s.1:%d", es[0].Data["run_id"], i+1); e.ID != want {
			t.Errorf("event %d has the id %s, want %s", i+1, e.ID, want)
		}
	}
}

func (w *world) chatEvents(body any, header http.Header) (*http.Response, []sseEvent) {
	w.t.Helper()
	resp := w.open("POST", "/api/chat", body, header)
	defer resp.Body.Close()
	return resp, readEvents(w.t, resp.Body, -1)
}

var wantJSON = http.Header{"Accept": {"application/json"}}

func TestAChatOverTheAPIStreamsInTheDocumentedOrderWithOneEnd(t *testing.T) {
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Thinking: []string{"Let me see. "}, Text: []string{"One ", "two ", "three."}})
	resp, es := w.chatEvents(map[string]any{"message": "Count."}, nil)
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	checkOrder(t, es)
	if run := resp.Header.Get("X-Run-Id"); run == "" || es[0].Data["run_id"] != run {
		t.Errorf("X-Run-Id %q, first event %v", run, es[0].Data)
	}
	var text string
	for _, e := range es {
		if e.Type == "text" {
			text += e.Data["content"].(string)
		}
	}
	done := es[len(es)-2].Data
	if text != "One two three." || done["response"] != text {
		t.Errorf("the pieces are %q, the response %q", text, done["response"])
	}
	if !slices.Contains(types(es), "thinking") {
		t.Errorf("no thinking in %v", types(es))
	}
	if u, _ := done["usage"].(map[string]any); u["output_tokens"] == 0.0 || u["input_tokens"] == 0.0 {
		t.Errorf("usage %v", done["usage"])
	}
	if n := w.count(`SELECT count(*) FROM usage`); n != 1 {
		t.Errorf("%d rows of usage for one model call", n)
	}
}

func TestAChatOverTheAPIAnswersWithOneObjectWhereJSONIsAskedFor(t *testing.T) {
	w, _ := newModelWorld(t, nil)
	resp := w.open("POST", "/api/chat", map[string]any{"message": "Hello", "session_id": "my-own-id"}, wantJSON)
	defer resp.Body.Close()
	var reply map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || reply["response"] != fakeSays || reply["model"] != fakeModel || reply["run_id"] == "" || reply["session_id"] == "" {
		t.Errorf("%d %v", resp.StatusCode, reply)
	}
	// The client's own id is kept as an alias: it means the same conversation.
	_, again := w.chatEvents(map[string]any{"message": "Hello again", "session_id": "my-own-id"}, nil)
	if again[0].Data["id"] != reply["session_id"] {
		t.Errorf("the id %v came back as another session %v", reply["session_id"], again[0].Data["id"])
	}
}

func TestAnIdempotencyKeyMakesOneRunHoweverOftenItIsSent(t *testing.T) {
	w, model := newModelWorld(t, nil)
	h := http.Header{"Idempotency-Key": {"order-4711"}, "Accept": {"application/json"}}
	body := map[string]any{"message": "Only once."}
	var runs []string
	for range 3 {
		resp := w.open("POST", "/api/chat", body, h)
		var reply map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || reply["response"] != fakeSays {
			t.Fatalf("%d %v", resp.StatusCode, reply)
		}
		runs = append(runs, reply["run_id"].(string))
	}
	if runs[0] != runs[1] || runs[1] != runs[2] || model.Total() != 1 {
		t.Errorf("runs %v, %d calls of the model", runs, model.Total())
	}
	resp := w.open("POST", "/api/chat", map[string]any{"message": "Something else."}, h)
	defer resp.Body.Close()
	if resp.StatusCode != 409 {
		t.Errorf("the same key with another body: %d, want 409", resp.StatusCode)
	}
}

// A reader that was cut off anywhere comes back by id and has every event
// once: while the run goes on, when it is over, and after a restart.
func TestAReaderJoinsAtEveryCutWithoutGapOrRepeatAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("a ", "b ", "c ", "d."))
	_, whole := w.chatEvents(map[string]any{"message": "Count."}, nil)
	checkOrder(t, whole)
	session, run := whole[0].Data["id"].(string), whole[0].Data["run_id"].(string)
	everyCut := func() {
		t.Helper()
		for i, e := range whole {
			resp := w.open("GET", "/api/chat/"+session+"/events?run="+run, nil, http.Header{"Last-Event-Id": {e.ID}})
			rest := readEvents(t, resp.Body, -1)
			resp.Body.Close()
			if last := i == len(whole)-1; last && resp.StatusCode != 204 {
				t.Errorf("a reader that has all gets %d, want 204", resp.StatusCode)
			}
			if !slices.Equal(ids(rest), ids(whole[i+1:])) {
				t.Errorf("after %s came %v, want %v", e.ID, ids(rest), ids(whole[i+1:]))
			}
		}
		resp := w.open("GET", "/api/chat/"+session+"/events?run="+run, nil, nil)
		all := readEvents(t, resp.Body, -1)
		resp.Body.Close()
		if !slices.Equal(ids(all), ids(whole)) {
			t.Errorf("from the start came %v", ids(all))
		}
	}
	everyCut()
	w.stop()
	w.start()
	defer w.stop()
	everyCut()
}

// A reader who joins while the answer is being made sees all of it from the
// cut on, live.
func TestAReaderJoinsARunThatContinues(t *testing.T) {
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"first ", "second"}, Hang: true})
	resp := w.open("POST", "/api/chat", map[string]any{"message": "Go."}, nil)
	defer resp.Body.Close()
	head := readEvents(t, resp.Body, 7)
	if len(head) != 7 || head[6].Type != "text" {
		t.Fatalf("the head: %v", types(head))
	}
	session, run := head[0].Data["id"].(string), head[0].Data["run_id"].(string)
	for cut := range head {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+w.cfg.Addr+"/api/chat/"+session+"/events?run="+run, nil)
		req.Header.Set("Authorization", "Bearer "+w.key)
		req.Header.Set("Last-Event-ID", head[cut].ID)
		joined, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := readEvents(t, joined.Body, 7-cut-1); !slices.Equal(ids(got), ids(head[cut+1:])) {
			t.Errorf("after %s came %v, want %v", head[cut].ID, ids(got), ids(head[cut+1:]))
		}
		cancel()
		joined.Body.Close()
	}
	if status, body := w.call("GET", "/api/chat/"+session+"/stream-status", nil); status != 200 || !strings.Contains(body, `"active":true`) {
		t.Errorf("stream-status: %d %s", status, body)
	}
	if status, body := w.call("GET", "/api/chat/active-streams", nil); status != 200 || !strings.Contains(body, run) {
		t.Errorf("active-streams: %d %s", status, body)
	}
	if status, body := w.call("POST", "/api/chat/"+session+"/abort", nil); status != 200 || !strings.Contains(body, `"aborted":true`) {
		t.Errorf("abort: %d %s", status, body)
	}
	rest := readEvents(t, resp.Body, -1)
	checkOrder(t, append(head, rest...))
	if rest[0].Type != "aborted" || rest[0].Data["partial_response"] != "first second" {
		t.Errorf("the end: %v", rest)
	}
	if status, body := w.call("POST", "/api/chat/"+session+"/abort", nil); status != 200 || !strings.Contains(body, `"aborted":false`) {
		t.Errorf("abort of nothing: %d %s", status, body)
	}
}

func TestAClientThatLeavesCancelsOnlyWhenItSaidSo(t *testing.T) {
	w, model := newModelWorld(t, nil)
	leave := func(cancelOnDisconnect bool) (run string) {
		t.Helper()
		model.Script(llmtest.Reply{Text: []string{"partly"}, Hang: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body := fmt.Sprintf(`{"message": "Go.", "cancel_on_disconnect": %v}`, cancelOnDisconnect)
		req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+w.cfg.Addr+"/api/chat", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+w.key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		es := readEvents(t, resp.Body, 6)
		return es[0].Data["run_id"].(string)
	}
	state := func(run string) int {
		return w.count(`SELECT count(*) FROM runs WHERE id = $1 AND state = 'aborted'`, run)
	}
	gone := leave(true)
	w.until("the run of the client that left is aborted", func() bool { return state(gone) == 1 })
	stays := leave(false)
	again := leave(true)
	w.until("the second is aborted", func() bool { return state(again) == 1 })
	if n := w.count(`SELECT count(*) FROM runs WHERE id = $1 AND state = 'running'`, stays); n != 1 {
		t.Error("a run whose client left without asking for it was cancelled")
	}
	for _, i := range w.app.bus.Active() {
		w.app.running.Abort(i.Session)
	}
}

func TestWhatTheAPICannotDoIsRefusedByName(t *testing.T) {
	w, _ := newModelWorld(t, nil)
	for name, c := range map[string]struct {
		body   map[string]any
		status int
		word   string
	}{
		"no message":      {map[string]any{}, 400, "message"},
		"too long":        {map[string]any{"message": strings.Repeat("x", 100<<10+1)}, 413, "message"},
		"unknown model":   {map[string]any{"message": "hello", "model": "openai/other"}, 400, "openai/other"},
		"reserved id":     {map[string]any{"message": "hello", "session_id": "stream"}, 400, "reserved"},
		"unknown level":   {map[string]any{"message": "hello", "trust_level": "root"}, 400, "root"},
		"level above key": {map[string]any{"message": "hello", "trust_level": "full"}, 403, "above"},
	} {
		resp := w.open("POST", "/api/chat", c.body, wantJSON)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(b), c.word) {
			t.Errorf("%s: %d %s, want %d with %q", name, resp.StatusCode, b, c.status, c.word)
		}
		if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "application/problem+json") {
			t.Errorf("%s: content type %q", name, ct)
		}
	}
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'done'`); n != 0 {
		t.Errorf("%d runs", n)
	}
}

// What is refused leaves no conversation behind: nothing is stored of it, in any form of answer.
func TestARefusedMessageLeavesNoConversation(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	long := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct {
		path   string
		body   map[string]any
		header http.Header
		status int
	}{
		"unknown model":              {"/api/chat", map[string]any{"message": "hello", "model": "openai/other"}, nil, 400},
		"unknown model, as JSON":     {"/api/chat", map[string]any{"message": "hello", "model": "openai/other"}, wantJSON, 400},
		"unknown model, later":       {"/api/chat", map[string]any{"message": "hello", "model": "openai/other"}, http.Header{"Prefer": {"respond-async"}}, 400},
		"Claude Code, which is off":  {"/api/chat", map[string]any{"message": "hello", "model": "claudecli/opus"}, nil, 400},
		"unknown council":            {"/api/chat", map[string]any{"message": "hello", "accuracy": "high"}, nil, 400},
		"unknown agent":              {"/api/chat", map[string]any{"message": "hello", "agent_path": "nobody"}, nil, 400},
		"unknown workspace":          {"/api/chat", map[string]any{"message": "hello", "workspace": "nowhere"}, nil, 400},
		"unknown conversation":       {"/api/chat", map[string]any{"message": "hello", "continued_from": "nothing"}, nil, 404},
		"too long":                   {"/api/chat", map[string]any{"message": long}, nil, 413},
		"first generation, model":    {"/api/chat/stream", map[string]any{"message": "hello", "model": "openai/other"}, nil, 400},
		"completions, model":         {"/v1/chat/completions", map[string]any{"model": "openai/other", "messages": []any{map[string]any{"role": "user", "content": "hello"}}}, nil, 404},
		"responses, model":           {"/v1/responses", map[string]any{"model": "openai/other", "input": "hello"}, nil, 404},
		"responses, in background":   {"/v1/responses", map[string]any{"model": "openai/other", "input": "hello", "background": true}, nil, 404},
		"responses, unknown earlier": {"/v1/responses", map[string]any{"model": "openai/fake-1", "input": "hello", "previous_response_id": "resp_nothing"}, nil, 404},
	} {
		resp := w.open("POST", c.path, c.body, c.header)
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d %.300s, want %d", name, resp.StatusCode, b, c.status)
		}
		for _, table := range []string{"sessions", "runs", "inbox", "responses"} {
			if n := w.count(`SELECT count(*) FROM ` + table); n != 0 {
				t.Fatalf("%s: %d rows in %s", name, n, table)
			}
		}
	}
	_, es := w.chatEvents(map[string]any{"message": "hello", "session_id": "mine"}, nil)
	if w.count(`SELECT count(*) FROM sessions`) != 1 {
		t.Fatal(es)
	}
	if resp := w.open("POST", "/api/chat", map[string]any{"message": "hello", "session_id": "mine", "model": "openai/other"}, nil); resp.StatusCode != 400 || w.count(`SELECT count(*) FROM runs`) != 1 {
		t.Errorf("in a conversation: %d, %d runs", resp.StatusCode, w.count(`SELECT count(*) FROM runs`))
	}
}

// A client may ask for less trust, never for more than its key has.
func TestTrustCannotBeRaisedOverTheAPI(t *testing.T) {
	w, _ := newModelWorld(t, nil)
	_, es := w.chatEvents(map[string]any{"message": "hello", "trust_level": "sandboxed"}, nil)
	if got := es[0].Data["trust_level"]; got != "sandboxed" {
		t.Errorf("asked for sandboxed, runs at %v", got)
	}
	_, es = w.chatEvents(map[string]any{"message": "hello"}, nil)
	if got := es[0].Data["trust_level"]; got != "vault" {
		t.Errorf("the key's own level: %v", got)
	}
	key := w.newKey(core.Sandboxed, "chat")
	h := http.Header{"Authorization": {"Bearer " + key}}
	for _, level := range []string{"vault", "full"} {
		resp := w.open("POST", "/api/chat", map[string]any{"message": "hello", "trust_level": level}, h)
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("a sandboxed key asks for %s: %d", level, resp.StatusCode)
		}
	}
	_, es = w.chatEvents(map[string]any{"message": "hello"}, h)
	if got := es[0].Data["trust_level"]; got != "sandboxed" {
		t.Errorf("a sandboxed key runs at %v", got)
	}
	for _, path := range []string{"/api/bots/pairing", "/api/bots/access", "/metrics"} {
		resp := w.open("GET", path, nil, h)
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("%s with a key of scope chat: %d", path, resp.StatusCode)
		}
	}
}

// A stop ends what API clients wait for, in so many words.
func TestAStopEndsTheRunsOfAPIClientsWithShutdown(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.DrainTimeout = 100 * time.Millisecond })
	model.Script(llmtest.Reply{Text: []string{"partly"}, Hang: true})
	resp := w.open("POST", "/api/chat", map[string]any{"message": "Go."}, nil)
	defer resp.Body.Close()
	head := readEvents(t, resp.Body, 6)
	go w.stop()
	rest := readEvents(t, resp.Body, -1)
	all := append(head, rest...)
	checkOrder(t, all)
	if end := all[len(all)-2]; end.Type != "error" || end.Data["code"] != "shutdown" || end.Data["can_retry"] != true {
		t.Errorf("the end: %v", end)
	}
}

// newKey makes an API key of the operator.
func (w *world) newKey(trust core.Trust, scopes ...string) string {
	w.t.Helper()
	secret, _, err := w.app.keys.Create(w.t.Context(), auth.NewKey{Label: "test", User: core.Operator, Trust: trust, Scopes: scopes}, cli)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}
