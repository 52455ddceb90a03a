package api

import (
	"context"
	"iter"

	"gatehouse/core"
	"gatehouse/core/bus"
)

type entries = iter.Seq2[bus.Entry, error]

const lastEvent = "message_stop"

// join begins to follow a session, so that nothing of run is missed that
// happens from now on, and then looks at the run: one that is over is replayed
// from what is kept, any other is followed until its end, even before it has
// begun. Joining first leaves no moment in which a run could end unseen. The
// caller ranges over the events or calls leave.
func (a *API) join(ctx context.Context, f bus.Follow) (events entries, ended bool, leave func(), err error) {
	live, stop := context.WithCancel(ctx)
	events = a.Follower.Follow(live, bus.Follow{Session: f.Session, LastID: f.LastID})
	leave = func() { // the bus forgets a reader when its iteration ends
		stop()
		for range events {
			break
		}
	}
	if f.Run == "" {
		return events, false, leave, nil
	}
	run, err := a.Runs.Run(ctx, f.Run)
	switch {
	case core.KindOf(err) == core.NotFound && a.recent.in(f.Run, f.Session):
		err = nil // stored, and not begun
	case err == nil && run.Session != f.Session:
		err = core.Errorf(core.NotFound, "this session has no such run")
	}
	if err != nil {
		leave()
		return nil, false, nil, err
	}
	if !run.Ended {
		return only(events, f.Run), false, leave, nil
	}
	leave()
	return a.Follower.Follow(ctx, f), true, func() {}, nil
}

// only is the events of one run, up to its last.
func only(events entries, run string) entries {
	return func(yield func(bus.Entry, error) bool) {
		for e, err := range events {
			if err == nil && e.Run != run {
				continue
			}
			if !yield(e, err) || err != nil || e.Type == lastEvent {
				return
			}
		}
	}
}
