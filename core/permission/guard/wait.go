package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
)

// How long a user has, and how many asks a guest has.
const (
	permissionTime = 120 * time.Second
	questionTime   = 300 * time.Second
	pollEvery      = time.Second // a decision on another node rings no bell here
	guestOpen      = 3           // asks of one guest that wait
	guestDaily     = 20          // asks of one guest in 24 hours
	maxShown       = 8 << 10     // bytes of a command or path that a user is asked about
	maxQuestions   = 16 << 10    // bytes of the model's questions
)

// Allow decides a call and asks where a user has to be asked: it opens an
// ask, emits core.PermissionRequest, calls waiting(true), and waits until
// someone decides, 120 s are over or ctx ends; then it calls waiting(false)
// and emits core.PermissionResolved. The Decision is Allow or Deny, with a text
// for the model. When ctx ends the ask is closed, nothing more is emitted, and
// the error is ctx's cause; any other error is ours. emit and waiting are
// called on the caller's goroutine.
func (g *Guard) Allow(ctx context.Context, p permission.Profile, t tool.Tool, c *tool.Call, emit func(core.Event), waiting func(bool)) (permission.Decision, error) {
	d, err := g.Decide(ctx, g.o.DB, p, t, c.Input, c.Access)
	if err != nil {
		return permission.Decision{}, err
	}
	if d.Verdict == permission.MustAsk {
		if d, err = g.ask(ctx, p, t, c, d, emit, waiting); err != nil {
			return permission.Decision{}, err
		}
	}
	g.o.Metrics.count(d)
	if d.Verdict == permission.Deny {
		g.o.Log.Info("tool call refused", "tool", t.Name, "rule", d.Rule, "trust", p.Trust.String(), "run", p.Run)
	}
	return d, nil
}

func (g *Guard) ask(ctx context.Context, p permission.Profile, t tool.Tool, c *tool.Call, d permission.Decision, emit func(core.Event), waiting func(bool)) (permission.Decision, error) {
	req := permission.Request(t, c.Access, d)
	switch {
	case !p.CanAsk:
		return d.With(permission.Deny, permission.RuleNobody, d.Text+" That needs the owner's approval, and no one can be asked here: it is denied."), nil
	case len(req.Path)+len(req.Command)+len(req.URL) > maxShown:
		return d.With(permission.Deny, permission.RuleHidden, "That needs the owner's approval, and it is too long for a person to judge. Do it in smaller steps."), nil
	}
	if p.User <= 0 { // known by a group alone: a grant would be everyone's there
		req.SuggestedGrants = []core.SuggestedGrant{}
	}
	body := ask.Payload{Request: &req, Session: p.Session, User: p.User, Owner: p.Owner, Trust: p.Trust, Call: c.ID, Commands: d.Commands, Reason: d.Text,
		Input: ask.InputHash(t.Name, c.Input)}
	body.Diff, body.Shown = change(ctx, t, c)
	asked, err := g.open(ctx, ask.Ask{Kind: ask.KindPermission, Run: p.Run, Bot: p.Bot, Chat: p.Chat, Asker: p.User}, permissionTime, &body, p)
	if core.KindOf(err) == core.Busy {
		return d.With(permission.Deny, permission.RuleTooMany, core.TextOf(err)), nil
	}
	if err != nil {
		return permission.Decision{}, err
	}
	emit(*body.Request)
	asked, err = g.wait(ctx, asked, waiting)
	if err != nil {
		return permission.Decision{}, err
	}
	d, resolved := outcome(asked, d)
	emit(resolved)
	if d.Verdict == permission.Allow { // what is forbidden may have changed in the meantime
		again, err := g.Decide(ctx, g.o.DB, p, t, c.Input, c.Access)
		if err != nil || again.Verdict == permission.Deny {
			return again, err
		}
		return asShown(ctx, asked, t, c, d), nil
	}
	return d, nil
}

// outcome returns what a settled ask means for the call.
func outcome(a ask.Ask, d permission.Decision) (permission.Decision, core.PermissionResolved) {
	r := core.PermissionResolved{ID: a.ID, Decision: ask.Denied, By: a.DecidedBy}
	switch {
	case a.State == ask.Decided && a.Decision == ask.Granted:
		r.Decision = ask.Granted
		return d.With(permission.Allow, permission.RulePerson, "Approved by "+a.DecidedBy+"."), r
	case a.State == ask.Expired:
		r.Decision = ask.Timeout
		return d.With(permission.Deny, permission.RuleTimeout, "No one answered within 120 seconds: it is denied."), r
	case a.State == ask.Decided:
		return d.With(permission.Deny, permission.RulePerson, "Denied by "+a.DecidedBy+". Do not try it by another way."), r
	}
	return d.With(permission.Deny, permission.RulePerson, "The question was withdrawn, so the answer is no."), r
}

// open stores an ask within the limits of its asker and shows it.
func (g *Guard) open(ctx context.Context, a ask.Ask, patience time.Duration, body *ask.Payload, p permission.Profile) (ask.Ask, error) {
	var out ask.Ask
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if err := g.limits(ctx, tx, p); err != nil {
			return err
		}
		a := a
		if err := g.locate(ctx, tx, &a); err != nil {
			return err
		}
		a.ID, a.ExpiresAt = ask.NewID(), tx.Time().Add(patience)
		if body.Request != nil {
			body.Request.ID, body.Request.ExpiresAt = a.ID, a.ExpiresAt
		}
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		a.Payload = string(b)
		if out, err = g.o.Asks.Open(ctx, tx, a); err != nil || g.o.Show == nil {
			return err
		}
		var req core.PermissionRequest
		if body.Request != nil {
			req = *body.Request
		}
		return g.o.Show.Open(ctx, tx, out, req, p)
	})
	if err != nil && core.KindOf(err) != core.Busy {
		return ask.Ask{}, fmt.Errorf("ask: %w", err)
	}
	return out, err
}

// locate has an ask shown where its run is to be answered by now.
func (g *Guard) locate(ctx context.Context, tx *store.Tx, a *ask.Ask) error {
	if g.o.Chat == nil || core.OfSession(a.Bot) {
		return nil
	}
	chat, err := g.o.Chat(ctx, tx, a.Run)
	if err == nil && chat != "" {
		a.Chat = chat
	}
	return err
}

// limits holds a guest to what one user may ask.
func (g *Guard) limits(ctx context.Context, tx *store.Tx, p permission.Profile) error {
	if p.Owner {
		return nil
	}
	open, today, err := g.o.Asks.Asked(ctx, tx, p.User)
	switch {
	case err != nil:
		return err
	case open >= guestOpen:
		return core.Errorf(core.Busy, "%d questions for this person wait for an answer already: the answer is no for now.", open)
	case today >= guestDaily:
		return core.Errorf(core.Busy, "This person's tools have asked %d times in 24 hours: the answer is no until tomorrow.", today)
	}
	return nil
}

// wait returns a settled ask. ask.Store reports it, and wait reads the row each second.
// When ctx ends the ask is closed, and a press of its buttons reports that.
func (g *Guard) wait(ctx context.Context, a ask.Ask, waiting func(bool)) (ask.Ask, error) {
	settled, stop := g.o.Asks.Watch(a.ID)
	defer stop()
	waiting(true)
	defer waiting(false)
	for {
		got, err := g.o.Asks.ByID(ctx, g.o.DB, a.ID)
		if ctx.Err() != nil {
			_, err := g.end(context.WithoutCancel(ctx), a.ID, ask.Closed, texts.Text("ask_stopped"))
			if err != nil {
				g.o.Log.Error("an ask of a stopped run stays open until its time is over", "ask", a.ID, "error", err)
			}
			return ask.Ask{}, context.Cause(ctx)
		}
		if core.KindOf(err) == core.NotFound { // its person was forgotten
			a.State = ask.Closed
			return a, nil
		}
		if err != nil || got.State != ask.Open {
			return got, err
		}
		left := got.ExpiresAt.Sub(g.o.Clock.Now())
		if left <= 0 {
			if got, err = g.end(ctx, a.ID, ask.Expired, ask.Timeout); err == nil && got.State != ask.Open || err != nil && ctx.Err() == nil {
				return got, err
			}
			left = pollEvery
		}
		select {
		case <-settled:
			settled = nil // the next look finds it
		case <-g.o.Clock.After(min(left, pollEvery)):
		case <-ctx.Done():
		}
	}
}

// end settles an ask without a user's decision; someone who was first wins.
// It gives the ask as it is then.
func (g *Guard) end(ctx context.Context, id, state, decision string) (ask.Ask, error) {
	var out ask.Ask
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		ended, err := g.o.Asks.End(ctx, tx, id, state, decision)
		if err != nil {
			return err
		}
		if err := g.closed(ctx, tx, ended); err != nil {
			return err
		}
		out, err = g.o.Asks.ByID(ctx, tx, id)
		return err
	})
	return out, err
}

// closed has the outcome shown where asks were shown.
func (g *Guard) closed(ctx context.Context, tx *store.Tx, asks []ask.Ask) error {
	for _, a := range asks {
		if g.o.Show == nil || a.Kind != ask.KindPermission && a.Kind != ask.KindQuestion {
			continue
		}
		if err := g.o.Show.Close(ctx, tx, a, ask.OutcomeText(a)); err != nil {
			return err
		}
	}
	return nil
}

// Abandon closes the asks of an earlier process, so that their buttons report that and
// the user's next message is no answer to them. The only process of this database
// calls it once, before it claims anything.
func (g *Guard) Abandon(ctx context.Context) error {
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		asks, err := g.o.Asks.CloseRuns(ctx, tx, texts.Text("ask_restarted"))
		if err != nil {
			return err
		}
		return g.closed(ctx, tx, asks)
	})
	if err != nil {
		return fmt.Errorf("abandon asks: %w", err)
	}
	return nil
}

// Expire ends asks whose time has ended (of a process that has ended, of a
// stranger's request) and returns how many, at most 100 at a time.
func (g *Guard) Expire(ctx context.Context) (int, error) {
	n := 0
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		asks, err := g.o.Asks.Expire(ctx, tx)
		n = len(asks)
		if err != nil {
			return err
		}
		return g.closed(ctx, tx, asks)
	})
	if err != nil {
		return 0, fmt.Errorf("expire asks: %w", err)
	}
	return n, nil
}
