package openai

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

const (
	maxAttempts = 4                      // per reply, the first included
	maxWait     = 30 * time.Second       // between all attempts of a reply together
	firstWait   = 500 * time.Millisecond // doubled for each further attempt
	noticeFrom  = 2 * time.Second        // shorter waits pass without a notice
	maxLearn    = 4                      // repeats of a request said differently
)

// Reply asks the model. Before the first piece of the answer it tries again up
// to three times, at most 30 s of waiting in all, after connection errors, 429
// and 5xx, and waits what Retry-After says; a longer wait is left to the
// caller as Fault.After. After the first piece it never repeats: a break is a
// Fault cut_off. The deltas are: notices, one with Model, the answer's pieces,
// whole tool calls, and the last with Stop and, where the server says it, Usage.
//
// How long a silent server is waited for is ctx's business; its end is
// yielded as an error that wraps context.Cause.
func (c *Client) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r := &reply{c: c, ctx: ctx, req: req, yield: yield}
		if bad := r.run(); bad != nil && !r.stopped {
			yield(llm.Delta{}, c.finish(ctx, bad))
		}
	}
}

// A reply is one call of Reply.
type reply struct {
	c        *Client
	ctx      context.Context
	req      *llm.Request
	yield    func(llm.Delta, error) bool
	model    string
	blind    bool // pictures and documents are left out: the server refused one
	answered bool // a piece of the answer was yielded
	stopped  bool // the caller broke off
}

// send yields d; false when the caller broke off.
func (r *reply) send(d llm.Delta) bool {
	if !r.stopped && !r.yield(d, nil) {
		r.stopped = true
	}
	return !r.stopped
}

// run makes attempts until one succeeds, faults for good, or nothing more may be waited for.
func (r *reply) run() *failure {
	var waited time.Duration
	learnt := 0
	for n := 1; ; {
		bad := r.attempt()
		if bad == nil || r.stopped || r.answered || r.ctx.Err() != nil {
			return bad
		}
		if learnt < maxLearn && r.learn(bad) {
			learnt++
			continue
		}
		wait := r.c.backoff(n, bad.fault.After)
		if !bad.again || n >= maxAttempts || waited+wait > maxWait {
			return bad
		}
		if !r.pause(wait, bad) {
			return bad
		}
		waited += wait
		n++
	}
}

// backoff is how long to wait after the nth attempt: what the provider said,
// else doubling from half a second; up to a quarter is added so that many do
// not come back together.
func (c *Client) backoff(n int, after time.Duration) time.Duration {
	wait := max(after, firstWait<<(n-1))
	return wait + time.Duration(c.rand()*float64(wait)/4)
}

// pause waits, with a notice when that takes long. False: ctx ended or the caller broke off.
func (r *reply) pause(wait time.Duration, bad *failure) bool {
	r.c.log.Info("model provider will be asked again", "provider", r.c.name, "code", bad.fault.Code,
		"status", bad.fault.Status, "wait", wait, "err", bad.fault.Error())
	if wait >= noticeFrom {
		what := "is busy"
		if bad.fault.Code == llm.CodeUnavailable || bad.fault.Code == llm.CodeCutOff {
			what = "does not answer"
		}
		seconds := int(math.Ceil(wait.Seconds()))
		if !r.send(llm.Delta{Notice: fmt.Sprintf("%s %s, trying again in %d s", r.c.name, what, seconds)}) {
			return false
		}
	}
	return core.Sleep(r.ctx, r.c.clock, wait)
}

// attempt asks once; nil means the answer was yielded to its end.
func (r *reply) attempt() *failure {
	model, bad := r.c.model(r.ctx)
	if bad != nil {
		return bad
	}
	r.model = r.c.name + "/" + model
	body, err := r.c.request(model, r.req, r.media())
	if err != nil {
		f := final(llm.CodeBadRequest, texts.Text("provider_bad_request"))
		f.fault.Err = r.c.hide("encoding the request: "+err.Error(), nil)
		return f
	}
	resp, bad := r.c.do(r.ctx, http.MethodPost, "/chat/completions", body)
	if bad != nil {
		if bad.fault.Status == http.StatusNotFound && r.c.configured == "" {
			r.c.choose("") // the chosen model is gone
		}
		return bad
	}
	defer resp.Body.Close()
	return r.read(resp)
}
