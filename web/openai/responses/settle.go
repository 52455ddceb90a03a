package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/response"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

const (
	// haltTime is how long a request waits for the end of a run that it stops; Tidy
	// goes on with it.
	haltTime = 10 * time.Second
	// lostAfter is when a response is given up whose run was never begun.
	lostAfter = 24 * time.Hour
	// tidyRows is how many responses one Tidy checks.
	tidyRows = 1000
)

// settle stores the outcome of an open response whose run has ended without a client
// that waited for it, and returns the response as it is then.
func (a *API) settle(ctx context.Context, row response.Row) (response.Row, error) {
	if row.State != response.Open {
		return row, nil
	}
	begun, over, err := a.Runs.Run(ctx, row.Run)
	if err != nil {
		return row, err
	}
	c := &call{a: a, row: row}
	switch {
	case over:
		err = c.settle(ctx, a.Desk.Follower.Follow(ctx, bus.Follow{Session: row.Session, Run: row.Run}))
	case !begun && a.Desk.Clock.Now().Sub(row.Created) > lostAfter:
		err = a.end(ctx, row, broken(refusal.Lost(nil), "", a.Desk.Clock.Now().Unix()))
	default:
		return row, nil
	}
	if err != nil || row.Hidden {
		row.State = response.Ended
		return row, err
	}
	return a.Rows.Get(ctx, row.User, row.ID)
}

// settle stores what the events of an ended run say.
func (c *call) settle(ctx context.Context, events func(func(bus.Entry, error) bool)) error {
	k := &keeper{c: c, ctx: ctx, over: true}
	rd := answer.Reader{Out: k, Param: "input"}
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Run == c.row.Run && rd.Take(e) {
			break
		}
	}
	return rd.End()
}

// stop makes an open response a cancelled one and stops its run.
func (a *API) stop(ctx context.Context, row response.Row, o outcome) error {
	stored, err := json.Marshal(o)
	if err != nil {
		return err
	}
	first, err := a.Rows.Stop(context.WithoutCancel(ctx), row.ID, stored)
	if err != nil || !first { // it has ended in the meantime
		return err
	}
	a.total.WithLabelValues(o.Status).Inc()
	return a.halt(ctx, row)
}

// halt stops the run of a response that is stored as stopping, at the latest with its
// first event, and waits for its end, at most haltTime.
func (a *API) halt(ctx context.Context, row response.Row) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	wait := a.Desk.Clock.After(haltTime)
	go func() {
		select {
		case <-wait:
			cancel()
		case <-ctx.Done():
		}
	}()
	events := a.Desk.Follower.Follow(ctx, bus.Follow{Session: row.Session, JustEnded: true})
	_, over, err := a.Runs.Run(ctx, row.Run)
	if err != nil || over {
		cancel() // there is nothing to wait for
	} else {
		a.Desk.Runs.Abort(row.Session)
	}
	for e := range events {
		if over = over || e.Run == row.Run && e.Type == "message_stop"; over || err != nil {
			break
		}
		if e.Run == row.Run {
			a.Desk.Runs.Abort(row.Session)
		}
	}
	if err != nil || !over { // Tidy goes on
		return err
	}
	return a.Rows.Stopped(context.WithoutCancel(ctx), row.ID)
}

// Tidy does what requests have left to do: it stores the outcomes of runs that ended,
// stops the runs of cancelled responses, and deletes the sessions of those that are
// not to be read. It returns how many responses it changed.
func (a *API) Tidy(ctx context.Context) (n int, err error) {
	rows, err := a.Rows.Pending(ctx, tidyRows)
	if err != nil {
		return 0, err
	}
	for _, row := range rows { // one that fails keeps no other from its end
		was := row.State
		row, failed := a.tidy(ctx, row)
		if failed != nil && err == nil {
			err = fmt.Errorf("response %s: %w", row.ID, failed)
		}
		if ctx.Err() != nil {
			return n, err
		}
		if row.State != was {
			n++
		}
	}
	return n, err
}

func (a *API) tidy(ctx context.Context, row response.Row) (response.Row, error) {
	row, err := a.settle(ctx, row)
	if core.KindOf(err) == core.NotFound { // deleted in the meantime
		return row, nil
	}
	if err != nil {
		return row, err
	}
	if row.State == response.Stopping {
		begun, over, err := a.Runs.Run(ctx, row.Run)
		if err != nil {
			return row, err
		}
		if !over && (begun || a.Desk.Clock.Now().Sub(row.Created) < lostAfter) {
			a.Desk.Runs.Abort(row.Session)
			return row, nil
		}
		if err := a.Rows.Stopped(ctx, row.ID); err != nil {
			return row, err
		}
		row.State = response.Ended
	}
	if !row.Hidden || row.State != response.Ended {
		return row, nil
	}
	return row, a.clear(ctx, row)
}

// clear deletes the session of a response that is not to be read, where no other
// response and no other turn is in it.
func (a *API) clear(ctx context.Context, row response.Row) error {
	alone, numbers, err := a.Rows.Alone(ctx, row.Session)
	if err != nil {
		return err
	}
	latest, runs, err := a.Runs.Latest(ctx, row.Session)
	if err != nil {
		return err
	}
	if alone = alone && runs <= numbers; alone && latest != "" {
		if alone, err = a.Rows.Has(ctx, latest); err != nil {
			return err
		}
	}
	if !alone {
		return a.Rows.Settled(ctx, row.ID)
	}
	err = a.Sessions.Delete(ctx, row.Session)
	switch core.KindOf(err) {
	case core.Conflict: // its run is about to end
		return nil
	case core.NotFound:
		return a.Rows.Drop(ctx, row.ID)
	}
	return err
}

// tidyNow tidies one response that is not to be read. What fails is left to Tidy.
func (a *API) tidyNow(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	row, err := a.Rows.Hidden(ctx, id)
	if err == nil {
		_, err = a.tidy(ctx, row)
	}
	if err != nil && core.KindOf(err) != core.NotFound {
		a.Desk.Log.Error("a response is not deleted yet", "response", id, "err", err)
	}
}
