package main

import (
	"context"
	"errors"
	"slices"

	"gatehouse/cmd/gatehouse/scheduling"
	"gatehouse/connectors/chat"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/dispatch"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission/raise"
	"gatehouse/core/queue"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/schedule"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing"
	"gatehouse/web/auth"
)

// A mailbox is what the gate calls of the queue: it posts to the outbox, and
// decides on messages that are held.
type mailbox struct {
	*outbox.Outbox
	*queue.Queue
}

// gate joins the gates: users on chat platforms by pairing, programs and the panel by key
// or session, daily agents by their files. With the orchestrator it is the queue's Turns.
type gate struct {
	pairing *pairing.Gate
	raises  *raise.Store
	http    auth.Gate
	chat    *chat.Chat
	runs    *orchestrator.Orchestrator
	ends    *dispatch.Ends

	busyMode  func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error)
	platform  func(bot string) string
	move      func(ctx context.Context, tx *store.Tx, bot, from, to string) error
	overheard *agent.Overheard
	outbox    *outbox.Outbox
	schedule  *schedule.Scheduler
	daily     *scheduling.Daily
}

// Admit decides about a new update; it is the queue's Turns.Admit.
func (g gate) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (a queue.Admission, err error) {
	if a.Admission, err = g.admit(ctx, tx, in); err != nil || a.Action != core.Run || a.Trust == core.Stranger {
		return a, err
	}
	switch in.Kind {
	case core.KindEdit, core.KindReaction, core.KindService:
		return a, nil
	case core.KindMessage:
		if in.Bot == core.ScheduleBot {
			return a, nil
		}
		if a.Answer, err = g.chat.Waiting(ctx, tx, in); err != nil || a.Answer {
			return a, err
		}
	}
	if err := g.chat.TakeAlbum(ctx, tx, in); err != nil {
		return a, err
	}
	a.Control = g.chat.IsControl(in)
	return a, g.busy(ctx, tx, in, &a)
}

func (g gate) admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Admission, error) {
	switch in.Bot {
	case core.APIBot:
		run, trust, err := g.http.Admit(ctx, tx, in)
		a := core.Admission{Verdict: core.Verdict{Trust: trust}}
		if run {
			a.Action = core.Run
		}
		return a, err
	case core.ScheduleBot:
		trust, err := g.schedule.Admit(ctx, tx, in)
		return core.Admission{Verdict: core.Verdict{Action: core.Run, Trust: trust}}, err
	}
	if in.Kind == core.KindService && in.MovedTo != "" {
		if err := g.move(ctx, tx, in.Bot, in.Chat, in.MovedTo); err != nil {
			return core.Admission{}, err
		}
	}
	if err := g.stands(ctx, tx, in); err != nil {
		return core.Admission{}, err
	}
	a, err := g.pairing.Admit(ctx, tx, in)
	if a.Overheard {
		at, line := in.Address, agent.Quoted{Name: in.From.Name, Trust: a.Trust, Text: in.Text}
		tx.OnCommit(func() { g.overheard.Add(at, line) })
	}
	return a, err
}

// busy sets what the busy mode of a message's chat means for it.
func (g gate) busy(ctx context.Context, tx *store.Tx, in *core.Inbound, a *queue.Admission) error {
	if in.Kind != core.KindMessage || in.Turn != nil {
		return nil
	}
	mode, err := g.busyMode(ctx, tx, in)
	a.Collect, a.Interrupt = mode != "queue", mode == "interrupt"
	return err
}

// Claim returns the admission of a stored update as it is now; it is the queue's
// Turns.Claim.
func (g gate) Claim(ctx context.Context, tx *store.Tx, in *core.Inbound) (a queue.Admission, err error) {
	if a.Admission, err = g.present(ctx, tx, in); err != nil {
		return a, err
	}
	if err := g.chat.TakeAlbum(ctx, tx, in); err != nil {
		return a, err
	}
	a.Control = g.chat.IsControl(in)
	return a, g.busy(ctx, tx, in, &a)
}

func (g gate) present(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Admission, error) {
	switch in.Bot {
	case core.APIBot:
		trust, err := g.http.Trust(ctx, tx, in)
		return core.Admission{Verdict: core.Verdict{Trust: trust}}, err
	case core.ScheduleBot:
		return core.Admission{Verdict: core.Verdict{Trust: g.schedule.Trust(in)}}, nil
	}
	return g.pairing.Present(ctx, tx, in)
}

// Ended ends a run that will have no result.
func (g gate) Ended(ctx context.Context, tx *store.Tx, run string) error {
	return g.ends.Abandon(ctx, tx, run)
}

// stands applies a change of the bot's own membership to the outbox: sends to chats that
// it cannot reach are paused until it can.
func (g gate) stands(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	var chats []string
	for _, id := range append(slices.Clone(in.Places), in.Chat) {
		if id != "" {
			chats = append(chats, id)
		}
	}
	switch in.Standing {
	case core.StandingBlocked:
		return g.outbox.Shut(ctx, tx, in.Bot, chats, "this person has blocked it")
	case core.StandingRemoved:
		return g.outbox.Shut(ctx, tx, in.Bot, chats, "it was removed, or the chat was deleted")
	case core.StandingUnblocked, core.StandingAdded:
		return g.outbox.Reopen(ctx, tx, in.Bot, chats)
	}
	return nil
}

// Prepare makes a claimed row into the orchestrator's turn.
func (g gate) Prepare(ctx context.Context, tx *store.Tx, t *queue.Turn) error {
	in := t.First()
	if in.Kind != core.KindMessage || in.Unsupported != "" && in.Text == "" {
		return nil
	}
	ref := session.Ref{Address: in.Address, Trust: t.Trust, Options: in.Turn, PlaceName: in.Where(), Source: g.platform(in.Bot)}
	if in.Turn != nil {
		ref.User, ref.Source = in.Turn.User, ""
		ref.Admin = in.Turn.User == core.Operator || in.Turn.Key == "" && in.Turn.User > 0 // no key: an admin's session
	} else {
		ref.User, ref.Admin = t.Sender.User, t.Sender.Role.Manages()
	}
	turn := &orchestrator.Turn{Run: t.Run, Rows: t.Rows, Received: t.Taken.Add(-t.Waited)}
	if in.Group() && in.Turn == nil {
		turn.Model, ref.AgentType = t.Sender.Model, t.Sender.Agent
	}
	if in.Bot == core.ScheduleBot {
		ref.Source = scheduling.Source
		if err := g.daily.Prepare(in, turn); err != nil {
			return err
		}
	}
	if err := g.runs.Prepare(ctx, tx, turn, ref); err != nil {
		return err
	}
	if in.Bot == core.ScheduleBot {
		if err := g.daily.Named(ctx, tx, in, turn); err != nil {
			return err
		}
	}
	t.Trust, t.Work = turn.Trust, turn
	return nil
}

// still returns the trust that a turn has now: access may be revoked, lowered or
// over, a group disabled, a key deleted, a role taken while it runs; then it is
// a stranger's. Trust for a time may be over or taken back: then it is the
// turn's Base.
func (g gate) still(ctx context.Context, db *store.DB, t *orchestrator.Turn) (has core.Trust, err error) {
	in := t.Rows[0]
	err = db.Tx(ctx, func(tx *store.Tx) error {
		has = core.Stranger
		now, err := g.present(ctx, tx, &in)
		if err == nil && now.Trust == core.Stranger && in.Group() { // it may have another id since
			now, err = g.moved(ctx, tx, &in, t.Run)
		}
		base := t.Trust
		if t.Raised() {
			base = t.Base
		}
		if err != nil || now.Trust < base {
			return err
		}
		if t.Admin && in.Turn == nil && !now.Role.Manages() {
			return nil
		}
		if has = base; t.Raised() {
			if _, ok, err := g.raises.Held(ctx, tx, in.Address, t.Session.ID, t.User); err != nil || !ok {
				return err
			}
			has = t.Trust
		}
		return nil
	})
	return has, err
}

// moved is present for a message where it is to be answered by now, and changes in so.
func (g gate) moved(ctx context.Context, tx *store.Tx, in *core.Inbound, run string) (core.Admission, error) {
	to, err := inspect.AddressOf(ctx, tx, run)
	if errors.Is(err, store.ErrNoRows) || err == nil && to == in.Address {
		return core.Admission{}, nil
	}
	if err != nil {
		return core.Admission{}, err
	}
	in.Address = to
	return g.present(ctx, tx, in)
}

// chatOfRun returns the chat in which a run is to be answered by now, or "" for a run
// without messages.
func chatOfRun(ctx context.Context, q store.Queryer, run string) (string, error) {
	at, err := inspect.AddressOf(ctx, q, run)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	return at.Chat, err
}

// raised returns the temporary trust of a turn: for the owner's own messages in the chat
// where it was requested, sent after it was confirmed.
func (a *app) raised(ctx context.Context, tx *store.Tx, t *orchestrator.Turn, ref session.Ref) (orchestrator.Raise, error) {
	if !ref.Admin {
		return orchestrator.Raise{}, nil
	}
	r, ok, err := a.raises.Held(ctx, tx, ref.Address, t.Session.ID, ref.User)
	if err != nil || !ok {
		return orchestrator.Raise{}, err
	}
	if t.Received.Before(r.At) {
		return orchestrator.Raise{}, nil
	}
	return orchestrator.Raise{Trust: core.Full, Since: r.At, Until: r.Ends}, nil
}
