// Package admission decides who may have a turn answered, and at which trust: it joins the
// gates of users, programs, panel and daily agents to what the queue asks.
package admission

import (
	"cmp"
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

// A Mailbox is what the gate calls of the queue: it posts to the outbox, and
// decides on messages that are held.
type Mailbox struct {
	*outbox.Outbox
	*queue.Queue
}

// Options of New; all are required.
type Options struct {
	Pairing   *pairing.Gate
	Raises    *raise.Store
	HTTP      auth.Gate
	Chat      *chat.Chat
	Runs      *orchestrator.Orchestrator
	Ends      *dispatch.Ends
	Sessions  *session.Store
	BusyMode  func() string // of chats that have none of their own
	Platform  func(bot string) string
	Move      func(ctx context.Context, tx *store.Tx, bot, from, to string) error
	Overheard *agent.Overheard
	Outbox    *outbox.Outbox
	Schedule  *schedule.Scheduler
	Daily     *scheduling.Daily
}

// A Gate joins the gates: users on chat platforms by pairing, programs and the panel by key
// or session, daily agents by their files. With the orchestrator it is the queue's Turns.
type Gate struct{ o Options }

// New returns a Gate.
func New(o Options) *Gate { return &Gate{o} }

// Admit decides about a new update; it is the queue's Turns.Admit.
func (g *Gate) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (a queue.Admission, err error) {
	if a.Admission, err = g.admit(ctx, tx, in); err != nil || a.Action != core.Run || a.Trust == core.Stranger {
		return a, err
	}
	asked := "" // the question that in does not answer
	switch in.Kind {
	case core.KindEdit, core.KindReaction, core.KindService:
		return a, nil
	case core.KindMessage:
		if in.Bot == core.ScheduleBot {
			return a, nil
		}
		wait, err := g.o.Chat.Asks().Take(ctx, tx, in)
		if a.Answer, a.Awaited, asked = wait.Answers, wait.Next, wait.Asked; err != nil || a.Answer {
			return a, err
		}
	}
	if err := g.o.Chat.TakeAlbum(ctx, tx, in); err != nil {
		return a, err
	}
	a.Control, a.Shows = g.o.Chat.Passes(in)
	if err := g.busy(ctx, tx, in, &a); err != nil || asked == "" || a.Interrupt {
		return a, err
	}
	return a, g.o.Chat.Asks().Remind(ctx, tx, in, asked)
}

func (g *Gate) admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Admission, error) {
	switch in.Bot {
	case core.APIBot:
		run, trust, err := g.o.HTTP.Admit(ctx, tx, in)
		a := core.Admission{Verdict: core.Verdict{Trust: trust}}
		if run {
			a.Action = core.Run
		}
		return a, err
	case core.ScheduleBot:
		trust, err := g.o.Schedule.Admit(ctx, tx, in)
		return core.Admission{Verdict: core.Verdict{Action: core.Run, Trust: trust}}, err
	}
	if in.Kind == core.KindService && in.MovedTo != "" {
		if err := g.o.Move(ctx, tx, in.Bot, in.Chat, in.MovedTo); err != nil {
			return core.Admission{}, err
		}
	}
	if err := g.stands(ctx, tx, in); err != nil {
		return core.Admission{}, err
	}
	a, err := g.o.Pairing.Admit(ctx, tx, in)
	if a.Overheard {
		at, line := in.Address, agent.Quoted{Name: in.From.Name, Trust: a.Trust, Text: in.Text}
		if in.Forwarded() {
			line = agent.Quoted{Name: in.Quote.Name, Label: "elsewhere", Trust: a.Trust, Text: in.Text}
		}
		tx.OnCommit(func() { g.o.Overheard.Add(at, line) })
	}
	return a, err
}

// busy sets what the busy mode of a message's chat means for it.
func (g *Gate) busy(ctx context.Context, tx *store.Tx, in *core.Inbound, a *queue.Admission) error {
	if in.Kind != core.KindMessage || in.Turn != nil {
		return nil
	}
	mode, err := g.o.Sessions.BusyMode(ctx, tx, in.Address)
	mode = cmp.Or(mode, g.o.BusyMode())
	a.Collect, a.Interrupt = mode != "queue", mode == "interrupt"
	return err
}

// Claim returns the admission of a stored update as it is now; it is the queue's
// Turns.Claim.
func (g *Gate) Claim(ctx context.Context, tx *store.Tx, in *core.Inbound) (a queue.Admission, err error) {
	if a.Admission, err = g.present(ctx, tx, in); err != nil {
		return a, err
	}
	if err := g.o.Chat.TakeAlbum(ctx, tx, in); err != nil {
		return a, err
	}
	a.Control, a.Shows = g.o.Chat.Passes(in)
	return a, g.busy(ctx, tx, in, &a)
}

func (g *Gate) present(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Admission, error) {
	switch in.Bot {
	case core.APIBot:
		trust, err := g.o.HTTP.Trust(ctx, tx, in)
		return core.Admission{Verdict: core.Verdict{Trust: trust}}, err
	case core.ScheduleBot:
		trust, err := g.o.Schedule.Trust(in)
		return core.Admission{Verdict: core.Verdict{Trust: trust}}, err
	}
	return g.o.Pairing.Present(ctx, tx, in)
}

// Ended ends a run that will have no result.
func (g *Gate) Ended(ctx context.Context, tx *store.Tx, run string) error {
	return g.o.Ends.Abandon(ctx, tx, run)
}

// stands applies a change of the bot's own membership to the outbox: sends to chats that
// it cannot reach are paused until it can, and may.
func (g *Gate) stands(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	var chats []string
	for _, id := range append(slices.Clone(in.Places), in.Chat) {
		if id != "" {
			chats = append(chats, id)
		}
	}
	switch in.Standing {
	case core.StandingBlocked:
		return g.o.Outbox.Shut(ctx, tx, in.Bot, chats, "this person has blocked it")
	case core.StandingRemoved:
		return g.o.Outbox.Shut(ctx, tx, in.Bot, chats, "it was removed, or the chat was deleted")
	case core.StandingUnblocked, core.StandingAdded:
		open, err := g.open(ctx, tx, in, chats)
		if err != nil {
			return err
		}
		return g.o.Outbox.Reopen(ctx, tx, in.Bot, open)
	}
	return nil
}

// open returns those of the chats that the bot is back in where what waited may be sent:
// groups that are enabled, and the direct chat of a user who has access. Both may have ended
// while it was out.
func (g *Gate) open(ctx context.Context, tx *store.Tx, in *core.Inbound, chats []string) (open []string, err error) {
	for _, id := range chats {
		var ok bool
		if in.Standing == core.StandingUnblocked {
			var trust core.Trust
			trust, err = g.o.Pairing.Trust(ctx, tx, &core.Inbound{Address: in.Address, From: in.From, Kind: core.KindMessage, Addressed: true, At: in.At})
			ok = trust > core.Stranger
		} else {
			ok, err = g.o.Pairing.People.Reach(ctx, tx, core.Address{Bot: in.Bot, Chat: id, Place: id}, nil)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			open = append(open, id)
		}
	}
	return open, nil
}

// Prepare makes a claimed row into the orchestrator's turn.
func (g *Gate) Prepare(ctx context.Context, tx *store.Tx, t *queue.Turn) error {
	in := t.First()
	if in.Kind != core.KindMessage || in.Unsupported != "" && in.Text == "" {
		return nil
	}
	ref := session.Ref{Address: in.Address, Trust: t.Trust, Options: in.Turn, PlaceName: in.Where(), Source: g.o.Platform(in.Bot)}
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
		if err := g.o.Daily.Prepare(in, turn); err != nil {
			return err
		}
	}
	if err := g.o.Runs.Prepare(ctx, tx, turn, ref); err != nil {
		return err
	}
	if in.Bot == core.ScheduleBot {
		if err := g.o.Daily.Named(ctx, tx, in, turn); err != nil {
			return err
		}
	}
	t.Trust, t.Work = turn.Trust, turn
	return nil
}

// Still returns the trust that a turn has now: access may be revoked, lowered or
// over, a group disabled, a key deleted, a role taken while it runs; then it is
// a stranger's. Trust for a time may be over or taken back: then it is the
// turn's Base.
func (g *Gate) Still(ctx context.Context, db *store.DB, t *orchestrator.Turn) (has core.Trust, err error) {
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
		if err != nil && in.Bot == core.ScheduleBot { // its file is being saved
			now.Trust, err = base, nil
		}
		if err != nil || now.Trust < base {
			return err
		}
		if t.Admin && in.Turn == nil && !now.Role.Manages() {
			return nil
		}
		if has = base; t.Raised() {
			if _, ok, err := g.o.Raises.Held(ctx, tx, in.Address, t.Session.ID, t.User); err != nil || !ok {
				return err
			}
			has = t.Trust
		}
		return nil
	})
	return has, err
}

// moved is present for a message where it is to be answered by now, and changes in so.
func (g *Gate) moved(ctx context.Context, tx *store.Tx, in *core.Inbound, run string) (core.Admission, error) {
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

// ChatOfRun returns the chat in which a run is to be answered by now, or "" for a run
// without messages.
func ChatOfRun(ctx context.Context, q store.Queryer, run string) (string, error) {
	at, err := inspect.AddressOf(ctx, q, run)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	return at.Chat, err
}

// Raised returns the temporary trust of a turn: for the owner's own messages in the chat
// where it was requested, sent after it was confirmed.
func Raised(ctx context.Context, tx *store.Tx, raises *raise.Store, t *orchestrator.Turn, ref session.Ref) (orchestrator.Raise, error) {
	if !ref.Admin {
		return orchestrator.Raise{}, nil
	}
	r, ok, err := raises.Held(ctx, tx, ref.Address, t.Session.ID, ref.User)
	if err != nil || !ok {
		return orchestrator.Raise{}, err
	}
	if t.Received.Before(r.At) {
		return orchestrator.Raise{}, nil
	}
	return orchestrator.Raise{Trust: core.Full, Since: r.At, Until: r.Ends}, nil
}
