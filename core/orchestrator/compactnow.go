package orchestrator

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Compact summarizes the older part of t's session on request, and returns approximately
// how many tokens it took before and after. It returns Conflict if there is nothing to
// summarize, and an error with a text for the user if a budget or provider refuses. write
// records the cost; call it in any case unless it is nil. The caller holds the session's
// lane.
func (o *Orchestrator) Compact(ctx context.Context, t *Turn) (before, after int, write func(context.Context, *store.Tx) error, err error) {
	r := o.newRun(t, func(core.Event) {})
	t.Role = o.Agents.Role(t.Session.AgentType, t.Session.Workspace)
	t.Started = r.began
	if _, err := r.choose("", nil); err != nil {
		return 0, 0, nil, err
	}
	if r.model == nil {
		return 0, 0, nil, texts.Error(core.Conflict, "compact_itself")
	}
	if o.Runtime != nil {
		o.Runtime.Leave(t.Session.ID)
	}
	r.name = r.model.About().Name
	if r.conv, err = o.Sessions.Open(ctx, t.Session); err != nil {
		return 0, 0, nil, err
	}
	defer func() { err = errors.Join(err, r.conv.Close()) }()
	c, ok, err := r.conv.Compactable(r.budget(runBudget))
	if err != nil {
		return 0, 0, nil, err
	}
	if !ok {
		return 0, 0, nil, texts.Error(core.Conflict, "compact_short")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.watch(ctx, cancel)
	tk := &talk{r: r, name: r.model.About().Priced(), show: r.emit, req: &llm.Request{Sender: r.sender(t.Trust)}}
	done, err := r.reuse(ctx, c.Tokens*reusePart/100)
	if done || err != nil {
		return c.Tokens, r.conv.Tokens(), nil, err
	}
	text, fault, err := tk.summary(ctx, c.Messages)
	write = func(ctx context.Context, tx *store.Tx) error { return r.bill.Record(ctx, tx, r.bill.Open()) }
	switch {
	case errors.Is(context.Cause(ctx), ErrAborted):
		return 0, 0, write, texts.Error(core.Conflict, "compact_stopped")
	case err != nil:
		return 0, 0, write, err
	case fault != nil:
		return 0, 0, write, &core.Error{Kind: core.Busy, Text: fault.Text, Err: fault}
	case text == "" || ctx.Err() != nil:
		return 0, 0, write, texts.Error(core.Busy, "compact_failed")
	}
	if err := r.conv.Compact(text, c.Keep); err != nil {
		return 0, 0, write, err
	}
	return c.Tokens, r.conv.Tokens(), write, r.keepNote(ctx, text, c)
}

// reusePart is the part of a conversation, in percent, that a note with the messages since
// may take twice, so that a user who wants it shorter gets it shorter.
const reusePart = 80
