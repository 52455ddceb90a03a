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
	open    int // calls whose result has not come
	got     map[string]*answer
	bounded bool // who has not answered is left out after a time
}

// bound notes whether the answers are awaited for a limited time: then silence does not end
// the run.
func (r *round) bound(on bool) {
	if on != r.bounded {
		r.bounded = on
		r.h.s.Bounded(map[bool]int{true: 1, false: -1}[on])
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
	r := &round{h: h, results: make(chan result, 2*len(h.members)), got: map[string]*answer{}}
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
		return r.h.lead(ctx, primary, nil, func() {
			select {
			case called <- struct{}{}:
			default:
			}
		})
	})
	r.consult(early, 0, r.h.s.Prompt.Messages)
	attempt, waiting, whole := 0, len(r.names), 0
	var late <-chan time.Time
	defer r.bound(false)
	for waiting > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-late:
			if len(r.results) == 0 {
				return nil
			}
			passed := make(chan time.Time)
			close(passed)
			late = passed // what came while an answer was read is taken
		case <-called: // answers of the others without its tools are not used
			if attempt == 0 {
				stopEarly()
				r.bound(false)
				attempt, late, whole = 1, nil, 0
				clear(r.got)
				waiting = len(r.names)
			}
		case x := <-r.results:
			r.open--
			if x.name != r.h.primary && x.attempt != attempt {
				continue
			}
			if x.err != nil {
				return x.err
			}
			if ctx.Err() != nil {
				return nil
			}
			if x.name == r.h.primary && len(x.draft.Tools) > 0 {
				if attempt == 0 { // the call was not seen yet
					stopEarly()
					clear(r.got)
					attempt, whole, waiting = 1, 0, len(r.names)
				}
				r.consult(ctx, 1, append(slices.Clip(r.h.s.Prompt.Messages), x.draft.Tools...))
			} else if x.name == r.h.primary && attempt == 1 {
				r.consult(ctx, 1, r.h.s.Prompt.Messages)
			}
			waiting--
			ok, err := r.take(ctx, x)
			if err != nil {
				return err
			}
			if ok {
				whole++
				late = r.wait(whole, late)
			}
			if err := r.keep(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait returns when who has not answered is left out.
func (r *round) wait(whole int, late <-chan time.Time) <-chan time.Time {
	switch whole {
	case 1:
		r.bound(true)
		return r.h.c.o.Clock.After(3 * r.h.m.Wait)
	case 2:
		return r.h.c.o.Clock.After(r.h.m.Wait)
	}
	return late
}

func (r *round) begin(name string, attempt int, call func() (orchestrator.Draft, error)) {
	r.open++
	go func() {
		d, err := call()
		r.results <- result{name, attempt, d, err}
	}()
}

// consult asks all but the primary.
func (r *round) consult(ctx context.Context, attempt int, messages []llm.Message) {
	for _, name := range r.names[1:] {
		m := r.h.model(name)
		r.begin(name, attempt, func() (orchestrator.Draft, error) {
			if d, ok := r.h.kept(ledger.StageAnswer, name, nil); ok {
				return d, nil
			}
			req := *r.h.s.Prompt
			req.Messages = messages
			req.System += "\n\n" + choice.ReportInstruction
			if len(r.h.afford([]llm.Model{m}, &req)) == 0 {
				return orchestrator.Draft{Model: name, Fault: overCost()}, nil
			}
			d, err := r.h.s.Ask(ctx, m, &req)
			r.h.took(name, &d)
			return d, err
		})
	}
}

// take notes an answer, and reports whether it is whole.
func (r *round) take(ctx context.Context, x result) (bool, error) {
	x.draft.Model = x.name
	a, err := r.h.of(ctx, x.draft)
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

// keep stores the answers so far, once the primary has ended: before that its calls of
// tools may make them void. Those that come together are stored together.
func (r *round) keep(ctx context.Context) error {
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
