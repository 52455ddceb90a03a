package main

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
)

// reserve reserves what a call is expected to take. The notice and the refusal
// are texts for the user.
func (a *app) reserve(ctx context.Context, r usage.Row) (id int64, notice string, err error) {
	id, crossed, err := a.usage.Reserve(ctx, a.db, r)
	if crossed != nil {
		notice = texts.Text("budget_warning", texts.With{"Percent": usage.WarnAt, "Whose": crossed.Whose, "Month": crossed.Month, "Budget": crossed.Budget})
	}
	switch refused := (*usage.Refusal)(nil); {
	case !errors.As(err, &refused):
	case refused.Unpriced:
		err = texts.Error(core.Busy, "budget_unpriced", texts.With{"Whose": refused.Whose, "Budget": refused.Budget})
	default:
		err = texts.Error(core.Busy, "budget_used", texts.With{"Whose": refused.Whose, "Month": refused.Month, "Budget": refused.Budget})
	}
	return id, notice, err
}
