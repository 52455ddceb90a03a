package main

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission/raise"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
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

// gate joins the two doors: users on chat platforms by pairing, programs and
// the panel by key or session.
type gate struct {
	pairing *pairing.Gate
	raises  *raise.Store
	http    auth.Gate
	move    func(ctx context.Context, tx *store.Tx, bot, from, to string) error

	overheard *agent.Overheard
	outbox    *outbox.Outbox
}

func (g gate) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Verdict, error) {
	if in.Bot == core.APIBot {
		run, trust, err := g.http.Admit(ctx, tx, in)
		v := core.Verdict{Trust: trust}
		if run {
			v.Action = core.Run
		}
		return v, err
	}
	if in.Kind == core.KindService && in.MovedTo != "" {
		if err := g.move(ctx, tx, in.Bot, in.Chat, in.MovedTo); err != nil {
			return core.Verdict{}, err
		}
	}
	if err := g.stands(ctx, tx, in); err != nil {
		return core.Verdict{}, err
	}
	v, err := g.pairing.Admit(ctx, tx, in)
	if v.Overheard {
		at, line := in.Address, agent.Quoted{Name: in.From.Name, Trust: v.Trust, Text: in.Text}
		tx.OnCommit(func() { g.overheard.Add(at, line) })
	}
	return v, err
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

func (g gate) Trust(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Trust, error) {
	if in.Bot == core.APIBot {
		return g.http.Trust(ctx, tx, in)
	}
	return g.pairing.Trust(ctx, tx, in)
}

// preparer makes a claimed row into the orchestrator's turn, in the claim's transaction.
type preparer struct {
	pairing  *pairing.Gate
	runs     *orchestrator.Orchestrator
	platform func(bot string) string
}

func (p preparer) prepare(ctx context.Context, tx *store.Tx, t *queue.Turn) error {
	in := t.First()
	if in.Kind != core.KindMessage || in.Unsupported != "" && in.Text == "" {
		return nil
	}
	ref := session.Ref{Address: in.Address, Trust: t.Trust, Options: in.Turn, PlaceName: in.Where(), Source: p.platform(in.Bot)}
	if in.Turn != nil {
		ref.User, ref.Source = in.Turn.User, ""
		ref.Admin = in.Turn.User == core.Operator
	} else {
		user, role, err := p.pairing.People.User(ctx, tx, in.From)
		if err != nil {
			return err
		}
		ref.User, ref.Admin = user, role.Manages()
	}
	turn := &orchestrator.Turn{Run: t.Run, Rows: t.Rows, Received: t.Taken.Add(-t.Waited)}
	if in.Group() && in.Turn == nil {
		set, err := p.pairing.Places.Place(ctx, tx, in.Bot, in.Place)
		if err != nil {
			return err
		}
		turn.Model, ref.AgentType = set.Model, set.Agent
	}
	if err := p.runs.Prepare(ctx, tx, turn, ref); err != nil {
		return err
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
		trust, err := g.Trust(ctx, tx, &in)
		base := t.Trust
		if t.Raised() {
			base = t.Base
		}
		if err != nil || trust < base {
			return err
		}
		if t.Admin && in.Turn == nil {
			_, role, err := g.pairing.People.User(ctx, tx, in.From)
			if err != nil || !role.Manages() {
				return err
			}
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
