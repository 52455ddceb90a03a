package orchestrator

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/usage"
)

// bill notes what one call of the model took, against its reservation. Where
// the provider did not say, the reservation is as it is.
func (r *run) bill(model string, u *core.Tokens, reserved usage.Row) usage.Row {
	row := r.spending(model)
	row.ID = reserved.ID
	if u == nil {
		u = &core.Tokens{}
		if reserved.ID != 0 {
			u.Input, u.Output = reserved.Input, reserved.Output
		}
	}
	row.Input, row.Output, row.CacheRead, row.CacheWrite = u.Input, u.Output, u.CacheRead, u.CacheWrite
	if c, ok := r.o.o.Cost(model, *u); ok && (u.Input+u.Output+u.CacheRead+u.CacheWrite+u.Searches > 0) {
		row.MicroUSD = &c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = append(r.spent, row)
	r.owe(&row, 1)
	return row
}

// grew notes how long the conversation is by the provider's count.
func (r *run) grew(u *core.Tokens) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.context = 0; u != nil {
		r.context = u.Input + u.CacheRead + u.CacheWrite + u.Output
	}
}

// owe notes that row was taken (1) or set aside (-1); r.mu is held.
func (r *run) owe(row *usage.Row, sign int64) {
	if row.ID == 0 {
		return
	}
	r.owed += sign * (row.Input + row.Output + row.CacheRead + row.CacheWrite)
	if row.MicroUSD != nil {
		r.owedUSD += sign * *row.MicroUSD
	}
}

func (r *run) spending(model string) usage.Row {
	return usage.Row{Run: r.t.Run, Session: r.t.Session.ID, User: r.t.User, Bot: r.t.Rows[0].Bot, Model: model}
}

// expectedOutput is how many tokens an answer is reserved with: most are
// shorter, and what it really took is settled after it.
const expectedOutput = 1000

// reserve asks for room in the budgets before a call. A refusal is a Fault for
// the user.
func (t *talk) reserve(ctx context.Context) (usage.Row, *llm.Fault, error) {
	r := t.r
	row := r.spending(t.name)
	if r.o.o.Reserve == nil {
		return row, nil, nil
	}
	row.Input, row.Output = int64(sizeOf(t.req)/4), int64(min(expectedOutput, t.req.MaxTokens))
	expected := core.Tokens{Input: row.Input, Output: row.Output}
	if t.req.Search != nil {
		expected.Searches = 1
	}
	if c, ok := r.o.o.Cost(t.name, expected); ok {
		row.MicroUSD = &c
	}
	aside := row
	r.mu.Lock()
	aside.Output += max(0, r.owed)
	if row.MicroUSD != nil {
		usd := *row.MicroUSD + max(0, r.owedUSD)
		aside.MicroUSD = &usd
	}
	r.mu.Unlock()
	id, notice, err := r.o.o.Reserve(ctx, aside)
	if core.KindOf(err) == core.Busy {
		return row, &llm.Fault{Code: "budget", Text: core.TextOf(err), Err: err}, nil
	}
	if notice != "" {
		t.r.emit(core.Warning{Code: "budget", Message: notice})
	}
	row.ID, aside.ID = id, id
	r.mu.Lock()
	r.owe(&aside, -1)
	r.mu.Unlock()
	return row, nil, err
}

// sizeOf returns the approximate size of a request in bytes.
func sizeOf(req *llm.Request) int {
	n := len(req.System)
	for _, x := range req.Tools {
		n += len(x.Name) + len(x.About) + len(x.Schema)
	}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			n += len(b.Text) + len(b.Input) + len(b.Name)
			for range b.Media {
				n += 6000 // about 1,500 tokens a picture
			}
		}
	}
	return n
}

// lose records what was spent on a run that ends without a Result.
func (r *run) lose(ctx context.Context) {
	r.mu.Lock()
	spent := r.spent
	r.mu.Unlock()
	if len(spent) == 0 || r.o.o.Spend == nil {
		return
	}
	if err := r.o.o.Spend(ctx, spent); err != nil {
		r.o.o.Log.Error("what a broken run has used is not recorded", "run", r.t.Run, "err", err)
	}
}
