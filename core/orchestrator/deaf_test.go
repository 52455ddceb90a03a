package orchestrator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/tool"
)

// deaf is a tool that heeds no end of its time; it ends when the test lets it.
func deaf(t *testing.T) (x tool.Tool, began chan struct{}, let func()) {
	began, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	x = echo("Deaf", true)
	x.Timeout = time.Minute
	x.Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
		defer close(done)
		close(began)
		<-free
		c.Progress("too late")
		panic("too late")
	}
	return x, began, func() { close(free); <-done }
}

// A person who stops an answer does not wait for a tool that does not heed it.
func TestAToolThatDoesNotHeedAStopIsLeftBehind(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	x, began, let := deaf(t)
	h.tools = []tool.Tool{x}
	h.model.reply = uses("Working.", `Deaf {}`, `Deaf {}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	turn := h.turn("r1", 1, "please")
	turn.Progress = func(text string) { t.Errorf("after the end: %q", text) }
	end := h.background(ctx, turn)
	<-began
	before := h.clock.Waiting(2) // the run's watch, and the call's
	cancel(orchestrator.ErrAborted)
	<-before
	h.clock.Advance(250 * time.Millisecond)
	res, err := end()
	if a, ok := res.Terminal.(core.Aborted); err != nil || !ok || a.PartialResponse != "Working." {
		t.Errorf("%+v %v", res, err)
	}
	let()
	h.model.reply = says("Yes?")
	h.watched(t.Context(), h.turn("r2", 1, "go on"))
	if got := h.results(1); len(got) != 2 || !strings.Contains(got[0], "did not stop when asked to") || !strings.Contains(got[1], "stopped before it began") {
		t.Errorf("the next turn's model was told %q", got)
	}
}

// One that does not heed its time limit is left behind too, and the model goes on.
func TestAToolThatDoesNotHeedItsTimeIsLeftBehind(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	x, began, let := deaf(t)
	defer let()
	x.Timeout = time.Millisecond
	h.tools = []tool.Tool{x}
	h.model.reply = replies(uses("", `Deaf {}`), says("I see."))
	end := h.background(t.Context(), h.turn("r1", 1, "please"))
	<-began
	<-h.clock.Waiting(2)
	h.clock.Advance(250 * time.Millisecond)
	res, err := end()
	if res.Response != "I see." || err != nil {
		t.Errorf("%+v %v", res, err)
	}
	if got := h.results(1); len(got) != 1 || !strings.Contains(got[0], "did not stop") {
		t.Errorf("the model was told %q", got)
	}
}
