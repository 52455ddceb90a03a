package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gatehouse/configs"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/tool"
)

// joinAt reads what a run's reader who has everything up to last still lacks.
func (w *world) joinAt(session, run, last string) []sseEvent {
	w.t.Helper()
	resp := w.open("GET", "/api/chat/"+session+"/events?run="+run, nil, http.Header{"Last-Event-Id": {last}})
	defer resp.Body.Close()
	return readEvents(w.t, resp.Body, -1)
}

// sameEvents compares what was read in pieces with what was read at once.
func sameEvents(t *testing.T, what string, got, want []sseEvent) {
	t.Helper()
	same := func(a, b sseEvent) bool {
		x, _ := json.Marshal(a.Data)
		y, _ := json.Marshal(b.Data)
		return a.ID == b.ID && string(x) == string(y)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("%s: joined %v, uncut %v", what, ids(got), ids(want))
	}
}

// A reader whose connection breaks after every single event, while the run
// goes on, has in the end what an uncut one has.
func TestAReaderThatIsCutAfterEveryEventHasTheWholeStream(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Thinking: []string{"Let me ", "see. "}, Text: []string{"I ", "look. "}, Calls: []llmtest.Call{
		{ID: "call_1", Name: "Glob", Fragments: []string{`{"pattern":`, `"*.md"}`}}}},
		llmtest.Reply{Text: strings.SplitAfter("one two three four five six seven eight nine ten", " ")})
	uncut := w.open("POST", "/api/chat", map[string]any{"message": "Go."}, nil)
	defer uncut.Body.Close()
	body := iotest.OneByteReader(uncut.Body) // reads no further than the event
	head := readEvents(t, body, 1)
	session, run := head[0].Data["id"].(string), head[0].Data["run_id"].(string)
	joined := slices.Clone(head)
	for joined[len(joined)-1].Type != "message_stop" && len(joined) < 100 {
		resp := w.open("GET", "/api/chat/"+session+"/events?run="+run, nil, http.Header{"Last-Event-Id": {joined[len(joined)-1].ID}})
		next := readEvents(t, resp.Body, 1)
		resp.Body.Close()
		if len(next) == 0 {
			t.Fatalf("after %s came nothing", joined[len(joined)-1].ID)
		}
		joined = append(joined, next...)
	}
	whole := append(head, readEvents(t, body, -1)...)
	checkOrder(t, whole)
	sameEvents(t, "cut after every event", joined, whole)
	w.stop()
	w.start()
	for i, e := range whole[:len(whole)-1] {
		sameEvents(t, "after a restart, from "+e.ID, append(slices.Clone(whole[:i+1]), w.joinAt(session, run, e.ID)...), whole)
	}
}

// A stop in the middle of a run: whoever was cut before, at any event, gets the
// rest and the same end from the gateway that was started again.
func TestAReaderOfAStoppedRunGetsItsEndAfterTheRestart(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.DrainTimeout = 50 * time.Millisecond })
	model.Script(llmtest.Reply{Text: []string{"a ", "b ", "c "}, Hang: true})
	resp := w.open("POST", "/api/chat", map[string]any{"message": "Go."}, nil)
	defer resp.Body.Close()
	body := iotest.OneByteReader(resp.Body)
	whole := readEvents(t, body, 6)
	done := make(chan struct{})
	go func() { w.stop(); close(done) }()
	whole = append(whole, readEvents(t, body, -1)...)
	<-done
	checkOrder(t, whole)
	if end := whole[len(whole)-2]; end.Type != "error" || end.Data["code"] != "shutdown" {
		t.Fatalf("the end: %v", end)
	}
	w.start()
	session, run := whole[0].Data["id"].(string), whole[0].Data["run_id"].(string)
	for i, e := range whole[:len(whole)-1] {
		sameEvents(t, "from "+e.ID, append(slices.Clone(whole[:i+1]), w.joinAt(session, run, e.ID)...), whole)
	}
}

// However a run ends, its stream ends in one terminal event and message_stop,
// and a reader who comes later is told the same.
func TestHoweverARunEndsItsStreamEndsOnce(t *testing.T) {
	sleeps := llmtest.CallTool("call_1", "Sleep", `{}`)
	for name, c := range map[string]struct {
		replies []llmtest.Reply
		until   string // abort when this was read; "" never
		end     string
		code    string // of an error
	}{
		"success":            {[]llmtest.Reply{llmtest.Say("Fine.")}, "", "done", ""},
		"a model that errs":  {[]llmtest.Reply{{Status: 401, Body: `{"error":{"message":"no","type":"invalid_request_error"}}`}}, "", "error", ""},
		"abort mid-token":    {[]llmtest.Reply{{Text: []string{"partly"}, Hang: true}}, "text", "aborted", ""},
		"abort mid-tool":     {[]llmtest.Reply{sleeps}, "tool_use_start", "aborted", ""},
		"abort mid-command":  {[]llmtest.Reply{llmtest.CallTool("call_1", "Bash", `{"command":"sleep 300"}`)}, "tool_use_start", "aborted", ""},
		"a tool that panics": {[]llmtest.Reply{llmtest.CallTool("call_1", "Panic", `{}`), llmtest.Say("Well.")}, "", "done", ""},
		"a run too long":     {[]llmtest.Reply{{Text: []string{"partly"}, Hang: true}}, "", "error", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, model := newModelWorld(t, func(cfg *configs.Config) {
				if name == "a run too long" {
					cfg.LimitRunTime = time.Second
				}
			})
			w.giveTools()
			model.Script(c.replies...)
			resp := w.open("POST", "/api/chat", map[string]any{"message": "Go."}, nil)
			defer resp.Body.Close()
			body := iotest.OneByteReader(resp.Body)
			var all []sseEvent
			if c.until != "" {
				for len(all) == 0 || all[len(all)-1].Type != c.until {
					next := readEvents(t, body, 1)
					if len(next) == 0 {
						t.Fatalf("the stream ended before %s: %v", c.until, types(all))
					}
					all = append(all, next...)
				}
				w.abort(all[0].Data["id"].(string))
			}
			all = append(all, readEvents(t, body, -1)...)
			w.endsOnce(all, c.end, c.code)
		})
	}
}

// A run that waits for a person's word ends as any other when it is aborted.
func TestAnAbortWhileAPersonIsAskedEndsTheStreamOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.lend()
	resp := w.open("POST", "/api/chat", map[string]any{"message": wantsToWrite}, ada.header)
	defer resp.Body.Close()
	body := iotest.OneByteReader(resp.Body)
	var all []sseEvent
	for len(all) == 0 || all[len(all)-1].Type != "permission_request" {
		next := readEvents(t, body, 1)
		if len(next) == 0 {
			t.Fatalf("nobody was asked: %v", types(all))
		}
		all = append(all, next...)
	}
	w.abort(all[0].Data["id"].(string))
	all = append(all, readEvents(t, body, -1)...)
	w.endsOnce(all, "aborted", "")
	if w.note() != "" {
		t.Error("the tool ran after the abort")
	}
}

// giveTools adds a tool that sleeps until it is aborted and one that panics.
func (w *world) giveTools() {
	k := w.app.tools
	for name, run := range map[string]func(context.Context, *tool.Call) (tool.Result, error){
		"Sleep": func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		},
		"Panic": func(context.Context, *tool.Call) (tool.Result, error) { panic("a tool's bug") },
	} {
		k.Tools = append(slices.Clip(k.Tools), tool.Tool{Name: name, About: "for a test", Schema: json.RawMessage(`{"type":"object"}`), Kind: tool.Inner, Run: run})
	}
}

func (w *world) abort(session string) {
	w.t.Helper()
	if status, body := w.call("POST", "/api/chat/"+session+"/abort", nil); status != 200 || !strings.Contains(body, `"aborted":true`) {
		w.t.Errorf("abort: %d %s", status, body)
	}
}

// endsOnce holds a stream to one end, and to the same when it is read again.
func (w *world) endsOnce(all []sseEvent, end, code string) {
	w.t.Helper()
	t := w.t.(*testing.T)
	checkOrder(t, all)
	last := all[len(all)-2]
	if last.Type != end || code != "" && last.Data["code"] != code {
		t.Errorf("the end is %s %v, want %s %s", last.Type, last.Data, end, code)
	}
	sameEvents(t, "read again", w.joinAt(all[0].Data["id"].(string), all[0].Data["run_id"].(string), ""), all)
}
