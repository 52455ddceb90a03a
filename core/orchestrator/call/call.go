// Package call makes calls of tools: within their time, and so that neither a tool that
// does not end nor one that panics keeps its run.
package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// defaultTime is how long a call may take where its tool names no other limit.
const defaultTime = time.Minute

var errTime = errors.New("the tool took too long")

// Outcomes of a tool call, as counted.
const (
	OK      = "ok"
	Error   = "error"
	Denied  = "denied"
	Timeout = "timeout"
	Aborted = "aborted"
)

// How long a cancelled tool may take to end before it is abandoned: one within this
// process, and one that ends programs.
const (
	ownPatience   = 250 * time.Millisecond
	shellPatience = 2 * time.Second
	maxLeft       = 64 // calls that were left behind and still work; more are not begun
)

// A Runner makes calls of tools. It is safe for concurrent use.
type Runner struct {
	clock core.Clock
	log   *slog.Logger
	sub   string
	left  atomic.Int32 // calls that were left behind and still work
}

// New returns a Runner. sub is the name of the tool whose calls make calls themselves.
func New(clock core.Clock, log *slog.Logger, sub string) *Runner {
	return &Runner{clock: clock, log: log, sub: sub}
}

// Run has x make the call c of a run within the tool's time, or until ctx ends, and
// returns the result for the model and the outcome. A tool that does not end in time is
// left behind, and 64 of these at most. A panic is a failed call. An error is the tool's
// own.
func (r *Runner) Run(ctx context.Context, run string, x *tool.Tool, c *tool.Call) (tool.Result, string, error) {
	limit := x.Timeout
	if limit == 0 {
		limit = defaultTime
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTime)
	defer cancel()
	res, err, inTime := r.within(limited, run, x, c)
	switch {
	case ctx.Err() != nil:
		if !inTime {
			return tool.Failed("it did not stop when asked to; what it did is unknown"), Aborted, nil
		}
		if res.Text == "" {
			res = tool.Failed("stopped while it ran; what it did until then is done")
		}
		res.IsError = true
		return res, Aborted, nil
	case !inTime:
		return tool.Failed(fmt.Sprintf("%s took longer than %v and did not stop when asked to; what it did is unknown", x.Name, limit)), Timeout, nil
	case err != nil && errors.Is(context.Cause(limited), errTime):
		return tool.Failed(fmt.Sprintf("%s took longer than %v and was stopped", x.Name, limit)), Timeout, nil
	case err != nil:
		return res, Error, err
	case res.IsError:
		return res, Error, nil
	}
	return res, OK, nil
}

// States of a call that was begun.
const (
	works = iota
	ended
	left
)

// patience returns how long x may take to end. A sub-turn ends behind its own calls.
func (r *Runner) patience(x *tool.Tool) time.Duration {
	switch {
	case x.Kind == tool.Shell:
		return shellPatience
	case x.Name == r.sub:
		return shellPatience + 4*ownPatience
	}
	return ownPatience
}

// within has x make the call. A tool that does not heed the end of its time is
// left behind (inTime is false), so that neither its person nor its chat waits
// for it: /stop is acted on whatever a tool does.
func (r *Runner) within(ctx context.Context, run string, x *tool.Tool, c *tool.Call) (res tool.Result, err error, inTime bool) {
	if r.left.Load() >= maxLeft {
		return tool.Result{}, core.Errorf(core.Busy, "too many tool calls do not end: restart the gateway"), true
	}
	type outcome struct {
		res tool.Result
		err error
	}
	done, progress := make(chan outcome, 1), c.Progress
	var state atomic.Int32 // works, ended or left
	c.Progress = func(text string) {
		if progress != nil && state.Load() == works {
			progress(text)
		}
	}
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil { // no one above recovers on this goroutine
				r.log.Error("a tool panicked", "run", run, "tool", x.Name, "panic", p)
				o = outcome{tool.Failed("internal error"), nil}
			}
			done <- o
			if !state.CompareAndSwap(works, ended) {
				r.left.Add(-1)
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
	case <-r.clock.After(r.patience(x)):
		if !state.CompareAndSwap(works, left) {
			o := <-done
			return o.res, o.err, true
		}
		r.left.Add(1)
		r.log.Warn("a tool does not end and is left behind", "run", run, "tool", x.Name)
		return tool.Result{}, nil, false
	}
}
