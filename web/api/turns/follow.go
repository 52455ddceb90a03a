package turns

import (
	"context"
	"iter"

	"gatehouse/core"
	"gatehouse/core/bus"
)

type entries = iter.Seq2[bus.Entry, error]

const lastEvent = "message_stop"

// join begins to follow a session, so that nothing of run is missed that
// happens from now on, and then checks the run: one that has ended is replayed
// from what is kept, any other is followed until its end, even before it has
// begun. Joining first leaves no moment in which a run could end unseen. The
// caller ranges over the events or calls leave.
func (a *API) join(ctx context.Context, f bus.Follow) (events entries, ended bool, leave func(), err error) {
	if f.Run == "" {
		if f, err = a.session(ctx, f); err != nil {
			return nil, false, nil, err
		}
		events, leave = a.follow(ctx, f)
		return events, false, leave, nil
	}
	events, leave = a.follow(ctx, f)
	run, err := a.Runs.Run(ctx, f.Run)
	if core.KindOf(err) == core.NotFound {
		waits, failed := a.Recent.in(ctx, f.Run, f.Session)
		switch {
		case waits || failed != nil:
			run.Session, err = f.Session, failed // stored, and not begun
		default:
			run, err = a.Runs.Run(ctx, f.Run) // it may have ended meanwhile
		}
	}
	if err == nil && run.Session != f.Session {
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
	return after(a.Follower.Follow(ctx, bus.Follow{Session: f.Session, Run: f.Run}), f.Run, f.LastID), true, func() {}, nil
}

// session returns f for all runs of its session: it begins with the running or just
// finished one, and after f.LastID only if that is an event of this session.
func (a *API) session(ctx context.Context, f bus.Follow) (bus.Follow, error) {
	f.JustEnded = true
	id, _, _, ok := bus.ParseID(f.LastID)
	if !ok {
		return f, nil
	}
	run, err := a.Runs.Run(ctx, id)
	if core.KindOf(err) == core.NotFound || err == nil && run.Session != f.Session {
		f.LastID, err = "", nil
	}
	return f, err
}

// follow begins to follow a session. The caller ranges over the events or calls
// leave.
func (a *API) follow(ctx context.Context, f bus.Follow) (events entries, leave func()) {
	live, stop := context.WithCancel(ctx)
	events = a.Follower.Follow(live, bus.Follow{Session: f.Session, LastID: f.LastID, JustEnded: f.JustEnded})
	return events, func() { // the bus forgets a reader when its iteration ends
		stop()
		for range events {
			break
		}
	}
}

// joinNew returns join for a run with a new id, which cannot have events: it looks
// nothing up.
func (a *API) joinNew(ctx context.Context, f bus.Follow) (events entries, leave func()) {
	events, leave = a.follow(ctx, f)
	return only(events, f.Run), leave
}

// after returns the events that a client who has last still lacks. The run has ended and
// read whole: its message_stop ends the events even when the reader has it.
func after(events entries, run, last string) entries {
	lastRun, attempt, n, ok := bus.ParseID(last)
	if !ok || lastRun != run {
		return events
	}
	return func(yield func(bus.Entry, error) bool) {
		for e, err := range events {
			if err == nil && (e.Attempt < attempt || e.Attempt == attempt && e.N <= n) {
				continue
			}
			if err == nil && e.Attempt > attempt { // what the reader has is of an attempt that was given up
				gap, err := void(e, last)
				if !yield(gap, err) || err != nil {
					return
				}
			}
			if g, is := e.Event.(core.Gap); is && err == nil && e.Attempt == attempt { // it begins behind what the reader has
				e, err = notice(e, core.Gap{From: bus.EventID(run, attempt, n+1), To: g.To})
			}
			attempt, n = max(attempt, e.Attempt), e.N
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// void notifies a client that everything up to e is void.
func void(e bus.Entry, last string) (bus.Entry, error) {
	e.N = 0
	return notice(e, core.Gap{From: last, To: e.ID()})
}

// notice returns g as an event with the id of e.
func notice(e bus.Entry, g core.Gap) (bus.Entry, error) {
	data, err := core.EncodeEvent(g)
	e.Type, e.Data, e.Event = g.EventType(), data, g
	return e, err
}

// only returns the events of one run, up to its last.
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
