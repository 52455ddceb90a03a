package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator/named"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
	"gatehouse/core/transcript"
)

// Bounds of tool calls.
const (
	callTime   = time.Minute // where a tool names no other
	maxBeside  = 4           // calls without effects that run next to each other
	maxResult  = 100_000     // bytes of one result
	maxRepeats = 3           // of the same call: a loop
	maxSubject = 80          // characters of a call that users read
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
		t.show(core.ToolUseStart{ID: calls[i].ID, Name: calls[i].Name, Input: object(calls[i].Input)})
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
		t.loop.note(&calls[i], !t.harmless(&calls[i]))
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
	began := r.o.o.Clock.Now()
	r.busy.Add(1)
	res, outcome := t.call(ctx, b)
	if (b.Name == "WebFetch" || b.Name == "WebSearch") && !res.IsError {
		r.found.Add(named.Result{Tool: b.Name, Input: b.Input, Text: res.Text}) // a sub-turn's conversation is not the session's
	}
	r.heardNow()
	r.busy.Add(-1)
	r.o.o.Metrics.called(b.Name, r.trust(), outcome)
	if res.Text == "" && len(res.Media) == 0 {
		res.Text = "(no output)"
	}
	res.Text = core.CutRunes(strings.ToValidUTF8(res.Text, "�"), r.resultSize())
	r.o.o.Log.Debug("tool used", "run", r.t.Run, "tool", b.Name, "outcome", outcome, "took", r.o.o.Clock.Now().Sub(began))
	block := core.Block{Type: "tool_result", ToolUseID: b.ID, Text: res.Text, IsError: res.IsError, Media: res.Media}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ErrAborted) && !told(ctx) {
		return block, nil // given back: the next attempt finds the call open
	}
	if err := t.keep(transcript.Message{Role: "user", Blocks: []core.Block{block}}); err != nil {
		return block, err
	}
	t.show(core.ToolResult{ToolUseID: b.ID, Result: res.Text, IsError: res.IsError})
	return block, nil
}

// Outcomes of a tool call, as counted.
const (
	callOK      = "ok"
	callError   = "error"
	callDenied  = "denied"
	callTimeout = "timeout"
	callAborted = "aborted"
)

// call decides about a call and makes it. A panic on the way, also of what
// reads the model's input to decide about it, is that call's alone.
func (t *talk) call(ctx context.Context, b *core.Block) (res tool.Result, outcome string) {
	defer func() {
		if p := recover(); p != nil {
			t.r.o.o.Log.Error("a tool panicked", "run", t.r.t.Run, "tool", b.Name, "panic", p)
			res, outcome = tool.Failed("internal error"), callError
		}
	}()
	if ctx.Err() != nil {
		return tool.Failed("stopped before it began"), callAborted
	}
	x, ok := t.find(b.Name)
	if !ok {
		return tool.Failed(t.unknown(b.Name)), callDenied
	}
	if ok, err := t.r.stillRaised(ctx); err != nil {
		return t.broken(&x, err)
	} else if !ok {
		return tool.Failed(changed), callDenied
	}
	kit := t.r.tooled()
	c := &tool.Call{ID: b.ID, Input: object(b.Input), Turn: kit.Turn, Progress: t.r.progress}
	if x.Touches != nil {
		a, err := x.Touches(c.Turn, c.Input)
		if err != nil {
			return t.broken(&x, err)
		}
		c.Access = a
	}
	d, err := t.r.o.o.Guard.Allow(ctx, kit.Profile, x, c, t.r.emit, t.r.waiting)
	switch {
	case ctx.Err() != nil:
		return tool.Failed("stopped before it began"), callAborted
	case err != nil:
		return t.broken(&x, err)
	case d.Verdict != permission.Allow:
		return tool.Failed(d.Text), callDenied
	}
	switch ok, err := t.r.still(ctx, false); { // an approval may have taken long
	case ctx.Err() != nil:
		return tool.Failed("stopped before it began"), callAborted
	case err != nil:
		return t.broken(&x, err)
	case !ok:
		return tool.Failed(changed), callDenied
	case t.r.tooled() != kit:
		return tool.Failed("the time at trust " + t.r.t.Trust.String() + " ended in the meantime: the call was not made; calls are made at trust " + t.r.t.Base.String() + " now"), callDenied
	}
	c.Shown = d.Shown
	return t.work(ctx, &x, c)
}

const changed = "this person's access changed concurrently: the call was not made"

// How long a cancelled tool may take to end before it is abandoned: one within this
// process, and one that ends programs.
const (
	leaveCall  = 250 * time.Millisecond
	leaveShell = 2 * time.Second
	maxLeft    = 64 // calls that were left behind and still work; more are not begun
)

// work runs a tool within its time.
func (t *talk) work(ctx context.Context, x *tool.Tool, c *tool.Call) (tool.Result, string) {
	limit := x.Timeout
	if limit == 0 {
		limit = callTime
	}
	within, cancel := context.WithTimeoutCause(ctx, limit, errTool)
	defer cancel()
	res, err, inTime := t.run(within, x, c)
	switch {
	case ctx.Err() != nil:
		if !inTime {
			return tool.Failed("it did not stop when asked to; what it did is unknown"), callAborted
		}
		if res.Text == "" {
			res = tool.Failed("stopped while it ran; what it did until then is done")
		}
		res.IsError = true
		return res, callAborted
	case !inTime:
		return tool.Failed(fmt.Sprintf("%s took longer than %v and did not stop when asked to; what it did is unknown", x.Name, limit)), callTimeout
	case err != nil && errors.Is(context.Cause(within), errTool):
		return tool.Failed(fmt.Sprintf("%s took longer than %v and was stopped", x.Name, limit)), callTimeout
	case err != nil:
		return t.broken(x, err)
	case res.IsError:
		return res, callError
	}
	return res, callOK
}

// What has become of a call that was begun.
const (
	callWorks = iota
	callEnded
	callLeft
)

// leave returns how long x may take to end. A sub-turn ends behind its own calls.
func leave(x *tool.Tool) time.Duration {
	switch {
	case x.Kind == tool.Shell:
		return leaveShell
	case x.Name == TaskName:
		return leaveShell + 4*leaveCall
	}
	return leaveCall
}

// run has x make the call. A tool that does not heed the end of its time is
// left behind (inTime is false), so that neither its person nor its chat waits
// for it: /stop is acted on whatever a tool does.
func (t *talk) run(ctx context.Context, x *tool.Tool, c *tool.Call) (res tool.Result, err error, inTime bool) {
	if t.r.o.left.Load() >= maxLeft {
		return tool.Result{}, core.Errorf(core.Busy, "too many tool calls do not end: restart the gateway"), true
	}
	type outcome struct {
		res tool.Result
		err error
	}
	done, progress := make(chan outcome, 1), c.Progress
	var state atomic.Int32 // callWorks, callEnded or callLeft
	c.Progress = func(text string) {
		if progress != nil && state.Load() == callWorks {
			progress(text)
		}
	}
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil { // no one above recovers on this goroutine
				t.r.o.o.Log.Error("a tool panicked", "run", t.r.t.Run, "tool", x.Name, "panic", p)
				o = outcome{tool.Failed("internal error"), nil}
			}
			done <- o
			if !state.CompareAndSwap(callWorks, callEnded) {
				t.r.o.left.Add(-1)
			}
		}()
		o.res, o.err = x.Run(ctx, c)
	}()
	select {
	case o := <-done:
		return o.res, o.err, true
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.res, o.err, true
	case <-t.r.o.o.Clock.After(leave(x)):
		if !state.CompareAndSwap(callWorks, callLeft) {
			o := <-done
			return o.res, o.err, true
		}
		t.r.o.left.Add(1)
		t.r.o.o.Log.Warn("a tool does not end and is left behind", "run", t.r.t.Run, "tool", x.Name)
		return tool.Result{}, nil, false
	}
}

// broken returns what the model is notified of an error.
func (t *talk) broken(x *tool.Tool, err error) (tool.Result, string) {
	if core.KindOf(err) == core.Other {
		t.r.o.o.Log.Error("a tool failed", "run", t.r.t.Run, "tool", x.Name, "err", err)
	}
	if core.KindOf(err) == core.Denied {
		return tool.Failed(core.TextOf(err)), callDenied
	}
	return tool.Failed(core.TextOf(err)), callError
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
	r.mu.Lock()
	defer r.mu.Unlock()
	before, now := r.waits, r.o.o.Clock.Now()
	if r.waits++; !on {
		r.waits -= 2
		r.looked.Store(-1)
	}
	if before == 0 {
		r.waitFrom = now
	} else if r.waits == 0 {
		r.waited += max(0, now.Sub(r.waitFrom))
	}
	if r.t.Waiting != nil && (before == 0 || r.waits == 0) {
		r.t.Waiting(on)
	}
}

// tools returns those of the turn.
func (r *run) tools() []tool.Tool {
	if r.kit == nil {
		return nil
	}
	return r.kit.Tools
}

// object returns input as a JSON object; what is none becomes an empty one, and
// the tool then reports what it misses.
func object(input json.RawMessage) json.RawMessage {
	if b := bytes.TrimSpace(input); len(b) > 0 && b[0] == '{' && json.Valid(b) {
		return input
	}
	return json.RawMessage("{}")
}

// subjects are the inputs that say best what a call is about.
var subjects = []string{"file_path", "path", "command", "pattern", "url", "query", "description", "name"}

// Label reports what a tool call is about, for users: "Write report.md".
func Label(name string, input json.RawMessage) string {
	if about := subject(input); about != "" {
		return name + " " + about
	}
	return name
}

// subject returns a short description of a call for users.
func subject(input json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(input, &m) != nil {
		return ""
	}
	for _, k := range subjects {
		if s, ok := m[k].(string); ok && s != "" {
			return core.CutRunes(core.CleanName(s), maxSubject)
		}
	}
	return ""
}
