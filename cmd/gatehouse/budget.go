package main

import (
	"context"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
)

// spending is what models cost: it reserves and records the usage of calls.
type spending struct {
	db     *store.DB
	ledger *usage.Ledger
	clock  core.Clock
	cost   func(model string, u core.Tokens) (int64, bool) // in millionths of a dollar
}

// reserve reserves what a call is expected to take. The notice and the refusal
// are texts for the user.
func (s *spending) reserve(ctx context.Context, r usage.Row) (id int64, notice string, err error) {
	id, crossed, err := s.ledger.Reserve(ctx, s.db, r)
	if crossed != nil {
		notice = texts.Text("budget_warning", texts.With{"Percent": usage.WarnAt, "Whose": crossed.Whose, "Month": crossed.Month, "Budget": crossed.Budget})
	}
	switch refused := (*usage.Refusal)(nil); {
	case !errors.As(err, &refused):
	case refused.Unpriced:
		err = &core.Error{Kind: core.Busy, Text: texts.Text("budget_unpriced", texts.With{"Whose": refused.Whose, "Budget": refused.Budget}), Err: refused}
	default:
		err = &core.Error{Kind: core.Busy, Text: texts.Text("budget_used", texts.With{"Whose": refused.Whose, "Month": refused.Month, "Budget": refused.Budget}), Err: refused}
	}
	return id, notice, err
}

// record records the usage of calls of a run that ended without being stored.
func (s *spending) record(ctx context.Context, rows []usage.Row) error {
	return s.db.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range rows {
			if err := s.ledger.Record(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// try asks m for one token and records the call's usage under name.
func (s *spending) try(ctx context.Context, name string, m llm.Model) (time.Duration, error) {
	first, used, err := registry.Try(ctx, m, s.clock)
	var f *llm.Fault
	if errors.As(err, &f) {
		return 0, core.Errorf(core.Busy, "%s does not answer: %s", name, f.Text)
	}
	if err != nil || used == nil {
		return first, err
	}
	row := usage.Row{User: core.Operator, Bot: "panel", Model: name, Input: int64(used.Input), Output: int64(used.Output), CacheRead: int64(used.CacheRead), CacheWrite: int64(used.CacheWrite)}
	if cost, known := s.cost(name, *used); known {
		row.MicroUSD = &cost
	}
	return first, s.record(ctx, []usage.Row{row})
}
