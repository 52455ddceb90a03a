package dispatch

import (
	"context"
	"math"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/queue"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/store"
)

// Stops stops what is being answered in chats, and what waits there for its next attempt. All are needed.
type Stops struct {
	DB      *store.DB
	Queue   *queue.Queue
	Running *Running
	Events  *runs.Store
}

// Stop is Running.Stop. A turn that has failed and is to be tried again ends when it begins, before
// a model is called.
func (s Stops) Stop(ctx context.Context, r command.Request) (stopped, others bool, err error) {
	if stopped, others = s.Running.Stop(r); stopped || others {
		return stopped, others, nil
	}
	return s.again(ctx, r, "", r.Seq)
}

// StopRun is Stop for one run, a pressed button.
func (s Stops) StopRun(ctx context.Context, r command.Request, run string) (stopped, others bool, err error) {
	if stopped, others = s.Running.StopRun(r, run); stopped || others || run == "" {
		return stopped, others, nil
	}
	return s.again(ctx, r, run, math.MaxInt64)
}

// again stops what r may stop of what is tried again in its chat: of run, "" for any.
func (s Stops) again(ctx context.Context, r command.Request, run string, before int64) (stopped, others bool, err error) {
	tries, err := inspect.Tries(ctx, s.DB, r.In.Bot, r.Lane, run, before)
	if err != nil {
		return false, false, err
	}
	turns := map[runs.Row][]int64{} // messages by run
	for _, t := range tries {
		row, err := s.Events.ByRun(ctx, t.Run)
		switch {
		case core.KindOf(err) == core.NotFound:
		case err != nil:
			return false, false, err
		case stop{Request: r}.may(&active{from: t.Sender, user: row.User}):
			turns[row] = append(turns[row], t.Seq)
		default:
			others = true
		}
	}
	if len(turns) == 0 {
		return false, others, nil
	}
	err = s.DB.Tx(ctx, func(tx *store.Tx) error {
		for row, messages := range turns {
			if err := s.Queue.Stop(ctx, tx, row.Session, messages); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, false, err
	}
	for row := range turns { // one may have begun in the meantime
		s.Running.StopRun(r, row.ID)
	}
	return true, false, nil
}
