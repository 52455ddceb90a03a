package main

import (
	"context"
	"errors"

	"gatehouse/core/report"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

func (a *app) closing(f func() error) { a.closers = append(a.closers, f) }

// Close ends every part in the reverse order of build.
func (a *app) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// tellOfCrash tells the owner in chat that the last run did not end properly, at most once a day.
func (a *app) tellOfCrash(ctx context.Context) {
	last, crashed := a.reports.Last()
	if !crashed || !last.Tell {
		return
	}
	told := func(ctx context.Context, tx *store.Tx) error { return report.Told(ctx, tx, last.ID) }
	if err := a.unasked().TellOwner(ctx, a.bots.Working(), "crash:"+last.ID, texts.Text("crashed", texts.With{"Restarted": last.Restarted}), told); err != nil && ctx.Err() == nil {
		a.log.Warn("the owner is not told of the crash", "err", err)
	}
}
