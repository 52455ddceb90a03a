package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/core/llm/llmtest"
)

// A toolCost is what one run took.
type toolCost struct{ commits, statements, objects int64 }

// toolRun has the operator's API ask for a run of n calls, one a round.
func (w *world) toolRun(model *llmtest.Server, n int) (c toolCost) {
	w.t.Helper()
	for i := range n {
		model.Script(llmtest.CallTool(fmt.Sprintf("call_%d", i), "Glob", fmt.Sprintf(`{"pattern":"*none%d.md"}`, i)))
	}
	model.Script(llmtest.Say("Done."))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.commits, c.statements = w.app.db.Commits(), w.app.db.Statements()
	resp := w.open("POST", "/api/chat", map[string]any{"message": "Please look it up."}, wantJSON)
	defer resp.Body.Close()
	var out struct {
		Response string
		Calls    int `json:"tool_calls"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Calls != n || out.Response != "Done." {
		w.t.Fatalf("%v; %+v after %d calls", err, out, n)
	}
	runtime.ReadMemStats(&after)
	c.commits, c.statements = w.app.db.Commits()-c.commits, w.app.db.Statements()-c.statements
	c.objects = int64(after.Mallocs - before.Mallocs)
	return c
}

// A tool call writes to the transcript; of the database it takes nothing of its
// own: events are stored together four times a second, and what the sender may
// still do is looked at once a second, however many the calls are.
func TestAToolCallCostsNoCommitOfItsOwn(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.Index = "off" })
	w.toolRun(model, 3)
	const few, many, calls = 4, 44, 40
	began := time.Now()
	short := w.toolRun(model, few)
	long := w.toolRun(model, many)
	took := time.Since(began)
	most := int64(took/(250*time.Millisecond)) + int64(took/time.Second) + 3
	commits, statements := long.commits-short.commits, long.statements-short.statements
	t.Logf("of %d calls: %d commits, %d statements in %v", calls, commits, statements, took)
	if commits > most {
		t.Errorf("%d more calls took %d more commits, want at most %d in %v", calls, commits, most, took)
	}
	if statements > 2*calls+8*most { // an event's row is one
		t.Errorf("%d more calls took %d more statements, in %v", calls, statements, took)
	}
}

// A tool call allocates little, the fake model's part included.
func TestAToolCallAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	w, model := newModelWorld(t, func(c *configs.Config) { c.Index = "off" })
	w.toolRun(model, 3)
	const few, many = 4, 24
	short, long := w.toolRun(model, few), w.toolRun(model, many)
	per := (long.objects - short.objects) / (many - few)
	t.Logf("%d objects a call", per)
	if per > maxToolObjects {
		t.Errorf("a call allocates %d objects, want at most %d", per, maxToolObjects)
	}
}

// maxToolObjects bounds what one round of a short run allocates, most of it the
// request that is made, checked by the fake and logged.
const maxToolObjects = 4000

// A run that waits for its model holds three goroutines of ours (itself, its
// watch, what its chat sees) and the two of its connection, and little memory,
// the simulated platform's and the fake model's share included.
func TestARunThatWaitsForItsModelCostsLittle(t *testing.T) {
	runs := 200
	if raceEnabled {
		runs = 40 // make counts has more
	}
	w, model := newModelWorld(t, func(c *configs.Config) { unguarded(c); c.DrainTimeout = 10 * time.Millisecond })
	users := w.crowd(runs)
	w.burst(users, 1) // makes the sessions
	w.quiet()
	for range runs {
		model.Script(llmtest.Reply{Text: []string{"Wait. "}, Hang: true})
	}
	asked := model.Total()
	goroutines, held := gatewayGoroutines(), heapInUse()
	for _, u := range users {
		u.Send("where do we stand with this?")
	}
	w.until("every run has asked", func() bool { return model.Total() == asked+runs }) // looking at goroutines stops them all
	// What earlier tests left may end meanwhile, so that a few seem to be missing.
	w.until("every run waits", func() bool { return gatewayGoroutines()-goroutines >= 3*runs-runs/5 })
	w.until("nothing is on its way beside them", func() bool { return gatewayGoroutines()-goroutines <= 3*runs+4 })
	per := (heapInUse() - held) / int64(runs)
	t.Logf("%d KiB a run", per>>10)
	if per > 200<<10 && !raceEnabled {
		t.Errorf("a run that waits holds %d KiB, want at most 200", per>>10)
	}
}

// heapInUse is what is held after a collection, in bytes.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// gatewayGoroutines counts those that run the gateway's own code, without the
// simulators, the fake model and calls of the platform.
func gatewayGoroutines() (n int) {
	buf := make([]byte, 32<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		foreign := strings.Contains(stack, "telegramtest") || strings.Contains(stack, "llmtest") || strings.Contains(stack, "testing.tRunner")
		if !foreign && strings.Contains(stack, "gatehouse/core/") {
			n++
		}
	}
	return n
}
