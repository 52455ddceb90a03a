package orchestrator

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/usage"
)

// reserve asks for room in the budgets before a call of a model, which takes the place of a
// reservation for another one. A refusal is a Fault for the user, with the time until the budget starts again.
func (t *talk) reserve(ctx context.Context, model string, instead usage.Row) (usage.Row, *llm.Fault, error) {
	row, notice, err := t.r.bill.Ask(ctx, model, t.req, instead)
	if core.KindOf(err) == core.Busy {
		fault := &llm.Fault{Code: "budget", Text: core.TextOf(err), Err: err}
		if refused, ok := errors.AsType[*usage.Refusal](err); ok {
			fault.After = refused.Until.Sub(t.r.o.Clock.Now())
		}
		return row, fault, nil
	}
	if notice != "" {
		t.r.emit(core.Warning{Code: "budget", Message: notice})
	}
	return row, nil, err
}

// grew notes how long the conversation is by the provider's count.
func (r *run) grew(u *core.Tokens) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.context = 0; u != nil {
		r.context = u.Input + u.CacheRead + u.CacheWrite + u.Output
	}
}

// lose records what was spent on a run that ends without a Result.
func (r *run) lose(ctx context.Context) {
	spent := r.bill.Open()
	if len(spent) == 0 || r.o.Spend == nil {
		return
	}
	if err := r.o.Spend(ctx, spent); err != nil {
		r.o.Log.Error("what a broken run has used is not recorded", "run", r.t.Run, "err", err)
	}
}
