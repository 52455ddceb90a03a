package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gatehouse/core"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/orchestrator/named"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
	"gatehouse/core/transcript"
)

// Bounds of tool calls.
const (
	maxBeside = 4       // calls without effects that run next to each other
	maxResult = 100_000 // bytes of one result
)

// use makes the calls of one answer and gives back their results, in the order
// of the calls. Calls without effects run next to each other, all others alone
// and in order. After ctx has ended the rest is not begun.
func (t *talk) use(ctx context.Context, calls []core.Block) ([]core.Block, error) {
	if t.using != nil {
		if err := t.using(ctx, calls); err != nil {
			return nil, err
		}
	}
	for i := range calls {
		input, _ := call.Object(calls[i].Input)
		t.show(core.ToolUseStart{ID: calls[i].ID, Name: calls[i].Name, Input: input})
	}
	t.r.mu.Lock()
	t.r.calls += len(calls)
	t.r.mu.Unlock()
	results := make([]core.Block, len(calls))
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && to-from < maxBeside && t.harmless(&calls[from]) && t.harmless(&calls[to]) {
			to++
		}
		var beside sync.WaitGroup
		errs := make([]error, to-from)
		for i := from; i < to; i++ {
			beside.Go(func() {
				defer func() { // no one above recovers on this goroutine
					if p := recover(); p != nil {
						errs[i-from] = fmt.Errorf("call of %q panicked: %v", calls[i].Name, p)
					}
				}()
				results[i], errs[i-from] = t.one(ctx, &calls[i])
			})
		}
		beside.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		from = to
	}
	for i := range calls {
		t.loop.Note(&calls[i], !t.harmless(&calls[i]))
	}
	return results, nil
}

func (t *talk) find(name string) (tool.Tool, bool) {
	i := slices.IndexFunc(t.tools, func(x tool.Tool) bool { return x.Name == name })
	if i < 0 {
		return tool.Tool{}, false
	}
	return t.tools[i], true
}

func (t *talk) harmless(b *core.Block) bool {
	x, ok := t.find(b.Name)
	return ok && !x.Effects
}

// again reports whether a call that was interrupted may be made again.
func (t *talk) again(b *core.Block) bool {
	x, ok := t.find(b.Name)
	return ok && x.Again
}

// one makes a call, keeps its result and shows it.
func (t *talk) one(ctx context.Context, b *core.Block) (core.Block, error) {
	r := t.r
	began := r.o.Clock.Now()
	r.watchdog.Busy(1)
	res, outcome := t.call(ctx, b)
	if (b.Name == "WebFetch" || b.Name == "WebSearch") && !res.IsError {
		r.found.Add(named.Result{Tool: b.Name, Input: b.Input, Text: res.Text}) // a sub-turn's conversation is not the session's
	}
	r.watchdog.Busy(-1)
	r.o.Metrics.Called(b.Name, r.trust(), outcome)
	if res.Text == "" && len(res.Media) == 0 {
		res.Text = "(no output)"
	}
	res.Text = core.CutRunes(strings.ToValidUTF8(res.Text, "�"), r.resultSize())
	r.o.Log.Debug("tool used", "run", r.t.Run, "tool", b.Name, "outcome", outcome, "took", r.o.Clock.Now().Sub(began))
	block := core.Block{Type: "tool_result", ToolUseID: b.ID, Text: res.Text, IsError: res.IsError, Media: res.Media}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ErrAborted) && !userNotified(ctx) {
		return block, nil // given back: the next attempt finds the call open
	}
	if err := t.keep(transcript.Message{Role: "user", Blocks: []core.Block{block}}); err != nil {
		return block, err
	}
	t.show(core.ToolResult{ToolUseID: b.ID, Result: res.Text, IsError: res.IsError})
	return block, nil
}

// call decides about a call and makes it. A panic on the way, also of what
// reads the model's input to decide about it, is that call's alone.
func (t *talk) call(ctx context.Context, b *core.Block) (res tool.Result, outcome string) {
	defer func() {
		if p := recover(); p != nil {
			t.r.o.Log.Error("a tool panicked", "run", t.r.t.Run, "tool", b.Name, "panic", p)
			res, outcome = tool.Failed("internal error"), call.Error
		}
	}()
	if ctx.Err() != nil {
		return tool.Failed("stopped before it began"), call.Aborted
	}
	x, ok := t.find(b.Name)
	if !ok {
		return tool.Failed(t.unknown(b.Name)), call.Denied
	}
	if ok, err := t.r.stillRaised(ctx); err != nil {
		return t.broken(&x, err)
	} else if !ok {
		return tool.Failed(changed), call.Denied
	}
	input, ok := call.Object(b.Input)
	if !ok { // without them it may do more than was meant
		return tool.Failed("the arguments of this call are not a JSON object: nothing was done"), call.Error
	}
	kit := t.r.kitNow()
	c := &tool.Call{ID: b.ID, Input: input, Turn: kit.Turn, Progress: t.r.progress}
	if x.Touches != nil {
		a, err := x.Touches(c.Turn, c.Input)
		if err != nil {
			return t.broken(&x, err)
		}
		c.Access = a
	}
	d, err := t.r.o.Guard.Allow(ctx, kit.Profile, x, c, t.r.emit, t.r.waiting)
	switch {
	case ctx.Err() != nil:
		return tool.Failed("stopped before it began"), call.Aborted
	case err != nil:
		return t.broken(&x, err)
	case d.Verdict != permission.Allow:
		return tool.Failed(d.Text), call.Denied
	}
	switch ok, err := t.r.checkTrust(ctx, false); { // an approval may have taken long
	case ctx.Err() != nil:
		return tool.Failed("stopped before it began"), call.Aborted
	case err != nil:
		return t.broken(&x, err)
	case !ok:
		return tool.Failed(changed), call.Denied
	case t.r.kitNow() != kit:
		return tool.Failed("the time at trust " + t.r.t.Trust.String() + " ended in the meantime: the call was not made; calls are made at trust " + t.r.t.Base.String() + " now"), call.Denied
	}
	c.Shown = d.Shown
	res, outcome, err = t.r.o.calls.Run(ctx, t.r.t.Run, &x, c)
	if err != nil {
		return t.broken(&x, err)
	}
	return res, outcome
}

const changed = "this person's access changed concurrently: the call was not made"

// broken returns what the model is notified of an error.
func (t *talk) broken(x *tool.Tool, err error) (tool.Result, string) {
	if core.KindOf(err) == core.Other {
		t.r.o.Log.Error("a tool failed", "run", t.r.t.Run, "tool", x.Name, "err", err)
	}
	if core.KindOf(err) == core.Denied {
		return tool.Failed(core.TextOf(err)), call.Denied
	}
	return tool.Failed(core.TextOf(err)), call.Error
}

func (t *talk) unknown(name string) string {
	names := make([]string, len(t.tools))
	for i := range t.tools {
		names[i] = t.tools[i].Name
	}
	return fmt.Sprintf("there is no tool %q here; there are: %s", core.CutRunes(core.CleanName(name), 64), strings.Join(names, ", "))
}

// progress reports a tool's output while it runs.
func (r *run) progress(text string) {
	if r.t.Progress != nil {
		r.t.Progress(core.CutRunes(text, 200))
	}
}

// waiting reports to the dispatcher that the turn waits for a user: once, however many
// of its calls wait, because it has one slot to release.
func (r *run) waiting(on bool) {
	if !on {
		r.trustChecked.Store(-1)
	}
	r.watchdog.Wait(on, func(on bool) {
		if r.t.Waiting != nil {
			r.t.Waiting(on)
		}
	})
}

// tools returns those of the turn.
func (r *run) tools() []tool.Tool {
	if r.kit == nil {
		return nil
	}
	return r.kit.Tools
}
