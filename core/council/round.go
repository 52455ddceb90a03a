package council

import (
	"context"
	"slices"
	"time"

	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
)

// A round is the answers of all members, while they come.
type round struct {
	h       *hearing
	names   []string // the primary in front
	results chan result
	open    int  // calls whose result has not come
	bounded bool // who has not answered is left out after a time
	attempt int  // 0 until the primary calls tools; what follows begins again with it
	got     map[string]*answer
	waiting int              // members whose answer has not come
	whole   int              // answers in got that are whole
	late    <-chan time.Time // when who has not answered is left out; nil: not yet
}

// restart begins an attempt: the answers so far are not used.
func (r *round) restart(attempt int) {
	r.bound(false)
	r.attempt, r.got, r.waiting, r.whole, r.late = attempt, map[string]*answer{}, len(r.names), 0, nil
}

// bound notes whether the answers are awaited for a limited time: then silence does not end
// the run.
func (r *round) bound(on bool) {
	if on == r.bounded {
		return
	}
	r.bounded = on
	if on {
		r.h.s.Bounded(1)
	} else {
		r.h.s.Bounded(-1)
	}
}

type result struct {
	name    string
	attempt int // 0 is that of a primary, and of others before it calls tools
	draft   orchestrator.Draft
	err     error
}

// gather asks all members at once. The others are asked again when the primary calls
// tools, with what these return. Wait after the second answer, or three times that
// after the first, who has not answered is left out.
func (h *hearing) gather(ctx context.Context) error {
	r := &round{h: h, results: make(chan result, 2*len(h.members))}
	r.names = append(r.names, h.primary)
	for _, name := range h.order() {
		if name != h.primary {
			r.names = append(r.names, name)
		}
	}
	for _, name := range r.names {
		h.mark(name, "asked")
	}
	h.stage("asking")
	all, stop := context.WithCancel(ctx)
	err := r.run(all)
	stop()
	for r.open > 0 { // ends soon: their context has ended
		<-r.results
		r.open--
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	for _, name := range r.names {
		a := r.got[name]
		if a == nil {
			a = &answer{model: name, state: isLate, why: tooSlow}
			h.mark(name, "late")
		}
		h.answers = append(h.answers, a)
	}
	return nil
}

func (r *round) run(ctx context.Context) error {
	early, stopEarly := context.WithCancel(ctx)
	defer stopEarly()
	called := make(chan struct{}, 1)
	primary := r.h.model(r.h.primary)
	r.begin(r.h.primary, 0, func() (orchestrator.Draft, error) {
		return r.h.askPrimary(ctx, primary, nil, func() {
			select {
			case called <- struct{}{}:
			default:
			}
		})
	})
	r.restart(0)
	r.askOthers(early, 0, r.h.s.Prompt.Messages)
	defer r.bound(false)
	for r.waiting > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-r.late:
			if len(r.results) == 0 {
				return nil
			}
			passed := make(chan time.Time)
			close(passed)
			r.late = passed // what came while an answer was read is taken
		case <-called: // answers of the others without its tools are not used
			if r.attempt == 0 {
				stopEarly()
				r.restart(1)
			}
		case x := <-r.results:
			r.open--
			if x.name != r.h.primary && x.attempt != r.attempt {
				continue
			}
			if x.err != nil {
				return x.err
			}
			if ctx.Err() != nil {
				return nil
			}
			if x.name == r.h.primary && len(x.draft.Tools) > 0 {
				if r.attempt == 0 { // the call was not seen yet
					stopEarly()
					r.restart(1)
				}
				r.askOthers(ctx, 1, append(slices.Clip(r.h.s.Prompt.Messages), x.draft.Tools...))
			} else if x.name == r.h.primary && r.attempt == 1 {
				r.askOthers(ctx, 1, r.h.s.Prompt.Messages)
			}
			r.waiting--
			ok, err := r.record(ctx, x)
			if err != nil {
				return err
			}
			if ok {
				r.whole++
				r.wait()
			}
			if err := r.storeAnswers(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait sets, after a whole answer, when who has not answered is left out.
func (r *round) wait() {
	switch r.whole {
	case 1:
		r.bound(true)
		r.late = r.h.c.o.Clock.After(3 * r.h.m.Wait)
	case 2:
		r.late = r.h.c.o.Clock.After(r.h.m.Wait)
	}
}

func (r *round) begin(name string, attempt int, call func() (orchestrator.Draft, error)) {
	r.open++
	go func() {
		d, err := call()
		r.results <- result{name, attempt, d, err}
	}()
}

// askOthers asks all but the primary.
func (r *round) askOthers(ctx context.Context, attempt int, messages []llm.Message) {
	for _, name := range r.names[1:] {
		m := r.h.model(name)
		r.begin(name, attempt, func() (orchestrator.Draft, error) {
			if d, ok := r.h.storedDraft(ledger.StageAnswer, name, nil); ok {
				return d, nil
			}
			req := *r.h.s.Prompt
			req.Messages = messages
			req.System += "\n\n" + choice.ReportInstruction
			if len(r.h.afford([]llm.Model{m}, &req)) == 0 {
				return orchestrator.Draft{Model: name, Fault: overCost()}, nil
			}
			d, err := r.h.s.Ask(ctx, m, &req)
			r.h.recordCall(name, &d)
			return d, err
		})
	}
}

// record notes an answer, and reports whether it is whole.
func (r *round) record(ctx context.Context, x result) (bool, error) {
	x.draft.Model = x.name
	a, err := r.h.answerFrom(ctx, x.draft)
	if err != nil {
		return false, err
	}
	r.got[x.name] = a
	state := "answered"
	if a.state != isOK {
		state = "failed"
	}
	r.h.mark(x.name, state)
	r.h.stage("asking")
	return a.state == isOK, nil
}

// storeAnswers stores the answers so far, once the primary has ended: before that its calls of
// tools may make them void. Those that come together are stored together.
func (r *round) storeAnswers(ctx context.Context) error {
	if r.got[r.h.primary] == nil || len(r.results) > 0 {
		return nil
	}
	var drafts []*orchestrator.Draft
	for _, a := range r.got {
		if a.state == isOK {
			drafts = append(drafts, &a.draft)
		}
	}
	return r.h.keep(ctx, ledger.StageAnswer, nil, drafts...)
}
