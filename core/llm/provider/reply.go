package provider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
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
	maxLearn    = 4                      // repeats of a changed request
)

// An Asker requests one reply in its provider's form.
type Asker interface {
	// Attempt asks once; nil means the answer was yielded to its end.
	Attempt() *Failure
	// Learn checks whether a refusal concerns a part of the request that can be
	// omitted or changed, and records that; true means: repeat the request.
	Learn(*Failure) bool
}

// A Reply is one answer on its way to who asked for it.
type Reply struct {
	Link  *Link
	Yield func(llm.Delta, error) bool

	Ctx      context.Context // set by Run
	Model    string          // who answers, as users write it
	Answered bool            // a piece of the answer was yielded
	Stopped  bool            // the caller broke off
}

// Run has a make attempts until one succeeds, faults for good, or nothing more
// may be waited for: at most four, and 30 s of waiting between them all. After
// the first piece of the answer nothing is asked twice.
func (r *Reply) Run(ctx context.Context, a Asker) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.Ctx = ctx
	if bad := r.ask(a); bad != nil && !r.Stopped {
		r.Yield(llm.Delta{}, r.Link.finish(ctx, bad))
	}
}

func (r *Reply) ask(a Asker) *Failure {
	var waited time.Duration
	learnt := 0
	for n := 1; ; {
		bad := a.Attempt()
		if bad == nil || r.Stopped || r.Answered || r.Ctx.Err() != nil {
			return bad
		}
		if learnt < maxLearn && a.Learn(bad) {
			learnt++
			continue
		}
		wait := r.Link.backoff(n, bad.Fault.After)
		if !bad.Again || n >= maxAttempts || waited+wait > maxWait {
			return bad
		}
		if !r.pause(wait, bad) {
			return bad
		}
		waited += wait
		n++
	}
}

// backoff returns how long to wait after the nth attempt: the provider's value,
// else doubling from half a second; up to a quarter is added so that many do
// not come back together.
func (l *Link) backoff(n int, after time.Duration) time.Duration {
	wait := max(after, firstWait<<(n-1))
	return wait + time.Duration(l.Rand()*float64(wait)/4)
}

// pause waits, with a notice when that takes long. False: ctx ended or the caller broke
// off.
func (r *Reply) pause(wait time.Duration, bad *Failure) bool {
	r.Link.Log.Info("model provider will be asked again", "provider", r.Link.Name, "code", bad.Fault.Code,
		"status", bad.Fault.Status, "wait", wait, "err", bad.Fault.Error())
	if wait >= noticeFrom {
		what := "is busy"
		if bad.Fault.Code == llm.CodeUnavailable || bad.Fault.Code == llm.CodeCutOff {
			what = "does not answer"
		}
		seconds := int(math.Ceil(wait.Seconds()))
		if !r.Send(llm.Delta{Notice: fmt.Sprintf("%s %s, trying again in %d s", r.Link.Name, what, seconds)}) {
			return false
		}
	}
	return core.Sleep(r.Ctx, r.Link.Clock, wait)
}

// Send yields d; false when the caller broke off.
func (r *Reply) Send(d llm.Delta) bool {
	if !r.Stopped && !r.Yield(d, nil) {
		r.Stopped = true
	}
	return !r.Stopped
}

// Refused yields the pictures or documents of the newest message that the provider refused.
// What came before was reported at its time.
func (r *Reply) Refused(req *llm.Request, images, documents bool) {
	var names []string
	if images {
		names = req.NewestMedia(true)
	}
	if documents {
		names = append(names, req.NewestMedia(false)...)
	}
	for i := range names {
		if names[i] = core.CutRunes(core.CleanName(names[i]), maxNamed); names[i] == "" {
			names[i] = texts.Text("a_file")
		}
	}
	if len(names) > maxNames {
		names = append(names[:maxNames], "…")
	}
	if len(names) > 0 {
		r.Send(llm.Delta{Unread: texts.Text("file_refused", texts.With{"Name": strings.Join(names, ", "), "Model": r.Model})})
	}
}

// Bounds of the names of refused files.
const (
	maxNames = 5
	maxNamed = 100 // bytes of one
)

// Begin yields the model's name in front of the answer's first piece.
func (r *Reply) Begin() bool {
	if r.Answered {
		return !r.Stopped
	}
	r.Answered = true
	return r.Send(llm.Delta{Model: r.Model})
}

// Piece yields thinking and text; false when the caller broke off.
func (r *Reply) Piece(thinking, text string) bool {
	if thinking == "" && text == "" {
		return !r.Stopped
	}
	return r.Begin() && r.Send(llm.Delta{Thinking: thinking, Text: text})
}

// Broken turns a failure in the middle of an answer into a cut-off, except a filter's.

func (r *Reply) Broken(bad *Failure) *Failure {
	if bad == nil || !r.Answered || bad.Fault.Code == llm.CodeFiltered {
		return bad
	}
	err := bad.Fault.Err
	if err == nil {
		err = errors.New(bad.Fault.Code)
	}
	return CutOff(err)
}

// An Ending is what, in addition to its calls, is only known at the end of an answer.
type Ending struct {
	Found []llm.Found
	Usage *core.Tokens
	Full  bool // it ends at the limit of tokens
	Said  bool // the provider gave a reason for the end
}

// Called yields the calls that were not yielded, when their place in the answer has come.
// One with broken arguments may be cut by the limit of tokens, as long as nothing follows
// it: it waits for End. False: the caller broke off.
func (r *Reply) Called(calls *Calls, followed bool) bool {
	for calls.sent < len(calls.list) {
		c := calls.list[calls.sent]
		if !followed && !c.whole() {
			return !r.Stopped
		}
		if !r.call(calls, c, false) {
			return false
		}
	}
	return !r.Stopped
}

// call yields the next call; cut: the answer ended at the limit of tokens.
func (r *Reply) call(calls *Calls, c *Call, cut bool) bool {
	calls.sent++
	block, ok := c.block(cut)
	return !ok || r.Begin() && r.Send(llm.Delta{Call: block})
}

// End yields the calls that were not yielded, the pages, the usage and the reason.
func (r *Reply) End(calls *Calls, e Ending) *Failure {
	stop := "end_turn"
	switch {
	case e.Full:
		stop = "max_tokens"
	case len(calls.list) > 0:
		stop = "tool_use"
	case !r.Answered && !e.Said:
		return Garbage("an answer without content and reason")
	}
	if !r.Begin() {
		return nil
	}
	for _, c := range calls.list[calls.sent:] {
		if !r.call(calls, c, e.Full) {
			return nil
		}
	}
	for i := range e.Found {
		if !r.Send(llm.Delta{Found: &e.Found[i]}) {
			return nil
		}
	}
	r.Send(llm.Delta{Usage: e.Usage, Stop: stop})
	return nil
}
