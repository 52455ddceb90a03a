package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"time"

	api "github.com/anthropics/anthropic-sdk-go"

	"gatehouse/core"
	"gatehouse/core/llm"
)

const (
	maxAttempts = 4                      // per reply, the first included
	maxWait     = 30 * time.Second       // between all attempts of a reply together
	firstWait   = 500 * time.Millisecond // doubled for each further attempt
	noticeFrom  = 2 * time.Second        // shorter waits pass without a notice
	maxLearn    = 4                      // repeats of a request said differently
)

// Reply asks the model. Before the first piece of the answer it tries again up
// to three times, at most 30 s of waiting in all, after connection errors, 429,
// 529 and 5xx, and waits what the server's headers say; a longer wait is left
// to the caller as Fault.After. After the first piece it never repeats: a break
// is a Fault cut_off. The deltas are: notices, one with Model, the answer's
// pieces, a Signature after each piece of thinking that has one, whole tool
// calls, and the last with Stop and Usage.
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
	unsigned bool // earlier thinking is left out: the server refused a signature
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

// mostTokens finds the limit in the words "max_tokens: 64000 > 8192, which is
// the maximum allowed number of output tokens for …".
var mostTokens = regexp.MustCompile(`max_tokens: \d+ > (\d+)`)

// learn looks whether a refusal is about a part of the request that can be
// left out or said differently, and remembers it; true means: ask again.
func (r *reply) learn(f *failure) bool {
	if f.fault.Status != http.StatusBadRequest || f.fault.Err == nil {
		return false
	}
	e, d := apiError{Message: f.fault.Err.Error()}, &r.c.dialect
	if m := mostTokens.FindStringSubmatch(e.Message); m != nil {
		most, err := strconv.ParseInt(m[1], 10, 64)
		old := d.maxTokens.Load()
		return err == nil && most > 0 && (old == 0 || most < old) && d.maxTokens.CompareAndSwap(old, most)
	}
	switch {
	case !r.blind && r.hasMedia() && e.says("image", "pdf", "document"):
		// "image dimensions exceed max allowed size: 8000 pixels", "The PDF specified is password protected.", …
		r.blind = true
		return true
	case e.says("`signature`", "`thinking` block", "thinking blocks") && !r.unsigned:
		r.unsigned = true
		return true
	case e.says("temperature") && r.req.Temperature != nil:
		return d.noTemperature.CompareAndSwap(false, true)
	case e.says("thinking"):
		return d.noThinking.CompareAndSwap(false, true)
	case e.says("cache_control"):
		return d.noCache.CompareAndSwap(false, true)
	}
	return false
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

// attempt asks once; nil means the answer was yielded to its end. A turn that
// the provider pauses in the middle of its search is gone on with.
func (r *reply) attempt() *failure {
	model, bad := r.c.model(r.ctx)
	if bad != nil {
		return bad
	}
	r.model = r.c.name + "/" + model
	p, before := r.params(model), &answer{}
	for pauses := 0; ; pauses++ {
		a, bad := r.stream(p)
		if bad != nil || r.stopped {
			return r.noSearch(bad)
		}
		a.join(before)
		if a.stop != api.StopReasonPauseTurn || r.req.Search == nil || pauses >= maxPauses {
			return r.end(a)
		}
		a.goOn(&p)
		before = a
	}
}

// stream takes one streamed message to its end.
func (r *reply) stream(p api.MessageNewParams) (*answer, *failure) {
	stream := r.c.messages.NewStreaming(r.ctx, p)
	defer stream.Close()
	a := &answer{}
	for stream.Next() {
		event := stream.Current()
		if bad := r.take(a, &event); bad != nil || r.stopped {
			return a, r.broken(bad)
		}
		if a.over {
			return a, nil
		}
	}
	if err := stream.Err(); err != nil {
		bad := r.c.failure(err, "an event is no JSON of the expected form")
		if bad.fault.Status == http.StatusNotFound {
			r.c.choose("") // a model chosen from the list is gone
		}
		return a, r.broken(bad)
	}
	if !a.begun {
		return a, garbage("no event in the stream")
	}
	return a, cutOff(errors.New("the stream ended without message_stop"))
}

// broken makes a failure in the middle of an answer a cut-off; a refusal's word stands.
func (r *reply) broken(bad *failure) *failure {
	if bad == nil || !r.answered || bad.fault.Code == llm.CodeFiltered {
		return bad
	}
	err := bad.fault.Err
	if err == nil {
		err = errors.New(bad.fault.Code)
	}
	return cutOff(err)
}
