// Package charged calls models for what is done beside the turns, such as titles and notes:
// each call counts against the budgets and the usage of a user.
package charged

import (
	"context"
	"errors"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// A Caller makes calls. All but Known is required.
type Caller struct {
	DB    *store.DB
	Usage *usage.Ledger
	// Cost is a call's price in millionths of a dollar, and whether it is known.
	Cost func(model string, u core.Tokens) (int64, bool)
	// Known reports whether a user is known and was not forgotten; nil: all are.
	Known func(ctx context.Context, q store.Queryer, user int64) (bool, error)
}

// Ask makes one call of m and returns the answer's text, cut behind the piece with which it has
// more than most bytes, and the tokens that were recorded. row says whose call it is, and has the
// input and output that are expected; its model is filled in. A model of a chain that answers in place of another one is
// reserved like the first, and is left out where the budget refuses it. A warning of a budget is left to the user's next turn.
//
// The error is a *usage.Refusal if the budget has no room, else the model's or the database's.
// With the model's the text is what had come. A call without counts of the provider is recorded as
// expected, or not at all if nothing came of it in time.
func (c Caller) Ask(ctx context.Context, m llm.Model, req *llm.Request, row usage.Row, most int) (text string, spent int64, err error) {
	if row, err = c.reserve(ctx, row, m.About().Priced()); err != nil {
		return "", 0, err
	}
	own := *req
	var broken error // of the database
	own.Instead = func(model string) error {
		next, err := c.reserve(ctx, row, model)
		if broken = nil; err == nil {
			row = next
		} else if !errors.As(err, new(*usage.Refusal)) {
			broken = err
		}
		return err
	}
	var b strings.Builder
	var took *core.Tokens
	for d, failed := range m.Reply(ctx, &own) {
		if err = failed; err != nil {
			break
		}
		if b.Len() <= most {
			b.WriteString(d.Text)
		}
		if d.Usage != nil {
			took = d.Usage
		}
	}
	made := b.Len() > 0 || errors.Is(context.Cause(ctx), context.DeadlineExceeded) // what timed out may be billed
	spent, settled := c.settle(context.WithoutCancel(ctx), row, took, made)
	return b.String(), spent, errors.Join(err, broken, settled)
}

// reserve reserves a call like row of a model, in place of the one that row has reserved.
func (c Caller) reserve(ctx context.Context, row usage.Row, model string) (usage.Row, error) {
	row.Model, row.Unread = model, true
	row.SetCost(c.Cost, core.Tokens{Input: row.Input, Output: row.Output})
	var err error
	row.ID, _, err = c.Usage.Reserve(ctx, c.DB, row)
	return row, err
}

// settle records the call's tokens, and returns how many they are. Of a user who was forgotten
// meanwhile, the call is no one's.
func (c Caller) settle(ctx context.Context, row usage.Row, took *core.Tokens, made bool) (spent int64, err error) {
	if took == nil && !made {
		return 0, c.Usage.Release(ctx, c.DB, row.ID)
	}
	if c.Known != nil {
		known, err := c.Known(ctx, c.DB, row.User)
		if err != nil {
			return 0, err
		}
		if !known {
			if err := c.Usage.Release(ctx, c.DB, row.ID); err != nil {
				return 0, err
			}
			row.ID, row.User, row.Session = 0, 0, ""
		}
	}
	if took == nil {
		took = &core.Tokens{Input: row.Input, Output: row.Output}
	}
	row.Input, row.Output, row.CacheRead, row.CacheWrite = took.Input, took.Output, took.CacheRead, took.CacheWrite
	row.SetCost(c.Cost, *took)
	err = c.DB.Tx(ctx, func(tx *store.Tx) error { return c.Usage.Record(ctx, tx, row) })
	return row.Input + row.Output + row.CacheRead + row.CacheWrite, err
}
