package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

// A client that does not know whether its call arrived may make it again.
func TestMCP_ARepeatedCallOfAskAgentAsksOnce(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w, model := newModelWorld(t, nil)
			o := w.outside(w.key, protocol)
			ask := map[string]any{"message": "Order tea.", "once": "tea-1"}
			first, again := o.must("ask_agent", ask, fakeSays), o.must("ask_agent", ask, fakeSays)
			if first["run_id"] == "" || first["run_id"] != again["run_id"] || first["session_id"] != again["session_id"] {
				t.Errorf("%v, then %v", first, again)
			}
			o.refused("ask_agent", map[string]any{"message": "Order coffee.", "once": "tea-1"}, "another body")
			r, err := o.CallTool(t.Context(), &sdk.CallToolParams{Meta: sdk.Meta{"gatehouse/once": "tea-1"}, Name: "ask_agent", Arguments: map[string]any{"message": "Order tea."}})
			if err != nil || r.IsError || r.StructuredContent.(map[string]any)["run_id"] != first["run_id"] {
				t.Errorf("named in _meta: %+v, %v", r, err)
			}
			o.refused("ask_agent", map[string]any{"message": "x", "once": "with space"}, "128")
			if model.Total() != 1 {
				t.Errorf("%d calls of the model", model.Total())
			}
		})
	}
}

// The repeat of a call is answered as the first was, also when of its run's events only the end is
// stored.
func TestMCP_ARepeatedCallIsAnsweredFromTheEndOfAPrunedRun(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	ask := map[string]any{"message": "Order tea.", "once": "tea-1"}
	first := w.outside(w.key, protocols[0]).must("ask_agent", ask, fakeSays)
	w.stop() // nothing is left in memory
	w.start()
	w.exec(`UPDATE runs SET ended = $1`, core.Stamp(w.app.clock.Now().Add(-2*time.Hour)))
	if n, err := w.app.events.Prune(t.Context()); n == 0 || err != nil {
		t.Fatalf("%d rows pruned, %v", n, err)
	}
	again := w.outside(w.key, protocols[0]).must("ask_agent", ask, fakeSays)
	if first["run_id"] == "" || first["run_id"] != again["run_id"] || first["session_id"] != again["session_id"] || model.Total() != 1 {
		t.Errorf("%v, then %v, %d calls of the model", first, again, model.Total())
	}
}

// A connection that breaks while the agent works costs nothing: the repeat joins the run.
func TestMCP_ARepeatJoinsTheRunWhoseConnectionBroke(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			clock := coretest.NewClock(time.Time{})
			model := llmtest.New(t, llmtest.Options{Key: modelKey, Clock: clock})
			model.Script(llmtest.Reply{Text: []string{"One ", "two."}, Pause: time.Minute})
			w, _ := newModelWorld(t, func(c *configs.Config) { c.OpenaiBaseURL = model.URL() })
			o := w.outside(w.key, protocol)
			header := http.Header{"Authorization": {"Bearer " + w.key}, "Mcp-Session-Id": {o.ID()}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
			if o.ID() == "" {
				header = http.Header{"Authorization": {"Bearer " + w.key}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
			}
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.cfg.Addr+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"ask_agent","arguments":{"message":"Count.","once":"k"}}}`))
				if err != nil {
					return
				}
				req.Header = header
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_ = resp.Body.Close()
				}
			}()
			clock.AwaitWaiters(1) // the model pauses
			cancel()
			<-left
			done := make(chan struct{})
			go func() {
				defer close(done)
				o.must("ask_agent", map[string]any{"message": "Count.", "once": "k"}, "One two.")
			}()
			for {
				select {
				case <-clock.Waiting(1):
					clock.Advance(time.Minute)
					continue
				case <-done:
				}
				break
			}
			if model.Total() != 1 || w.count(`SELECT count(*) FROM runs WHERE state = 'aborted'`) != 0 {
				t.Errorf("%d calls of the model", model.Total())
			}
		})
	}
}
