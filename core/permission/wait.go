package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
)

// How long a person has, and how many asks a guest has.
const (
	permissionTime = 120 * time.Second
	questionTime   = 300 * time.Second
	pollEvery      = time.Second // a decision on another node rings no bell here
	guestOpen      = 3           // asks of one guest that wait
	guestDaily     = 20          // asks of one guest in 24 hours
	maxShown       = 8 << 10     // bytes of a command or path that a person is asked about
	maxQuestions   = 16 << 10    // bytes of the model's questions
)

// Decisions of a permission, as Ask.Decision and core.PermissionResolved have them.
const (
	decisionGranted = "granted"
	decisionDenied  = "denied"
	decisionTimeout = "timeout"
)

// payload is what an ask of ours carries.
type payload struct {
	Request   *core.PermissionRequest `json:"request,omitempty"`
	Questions json.RawMessage         `json:"questions,omitempty"`
	Session   string                  `json:"session_id"`
	User      int64                   `json:"user_id"`
	Owner     bool                    `json:"owner"`
	Trust     core.Trust              `json:"trust_level"`
	Call      string                  `json:"call,omitempty"`
	Commands  []string                `json:"commands,omitempty"`
	Reason    string                  `json:"reason,omitempty"`
}

// Allow decides a call and asks where a person has to be asked: it opens an
// ask, emits core.PermissionRequest, calls waiting(true), and waits until
// somebody decides, 120 s are over or ctx ends; then it calls waiting(false)
// and emits core.PermissionResolved. The Decision is Allow or Deny, with words
// for the model. When ctx ends the ask is closed, nothing more is emitted, and
// the error is ctx's cause; any other error is ours. emit and waiting are
// called on the caller's goroutine.
func (g *Guard) Allow(ctx context.Context, p Profile, t tool.Tool, callID string, input json.RawMessage, a tool.Access, emit func(core.Event), waiting func(bool)) (Decision, error) {
	d, err := g.Decide(ctx, g.o.DB, p, t, input, a)
	if err != nil {
		return Decision{}, err
	}
	if d.Verdict == MustAsk {
		if d, err = g.ask(ctx, p, t, callID, input, a, d, emit, waiting); err != nil {
			return Decision{}, err
		}
	}
	g.o.Metrics.count(d)
	if d.Verdict == Deny {
		g.o.Log.Info("tool call refused", "tool", t.Name, "rule", d.Rule, "trust", p.Trust.String(), "run", p.Run)
	}
	return d, nil
}

func (g *Guard) ask(ctx context.Context, p Profile, t tool.Tool, callID string, input json.RawMessage, a tool.Access, d Decision, emit func(core.Event), waiting func(bool)) (Decision, error) {
	req := request(t, a, d)
	switch {
	case !p.CanAsk:
		return d.is(Deny, RuleNobody, d.Text+" That needs the owner's approval, and nobody can be asked here: the answer is no."), nil
	case len(req.Path)+len(req.Command)+len(req.URL) > maxShown:
		return d.is(Deny, RuleHidden, "That needs the owner's approval, and it is too long for a person to judge. Do it in smaller steps."), nil
	}
	if p.User <= 0 { // known by a group alone: a grant would be everybody's there
		req.SuggestedGrants = []core.SuggestedGrant{}
	}
	body := payload{Request: &req, Session: p.Session, User: p.User, Owner: p.Owner, Trust: p.Trust, Call: callID, Commands: d.Commands, Reason: d.Text}
	ask, err := g.open(ctx, Ask{Kind: KindPermission, Run: p.Run, Bot: p.Bot, Chat: p.Chat, Asker: p.User}, permissionTime, &body, p)
	if core.KindOf(err) == core.Busy {
		return d.is(Deny, RuleTooMany, core.TextOf(err)), nil
	}
	if err != nil {
		return Decision{}, err
	}
	emit(*body.Request)
	ask, err = g.wait(ctx, ask, waiting)
	if err != nil {
		return Decision{}, err
	}
	d, resolved := outcome(ask, d)
	emit(resolved)
	if d.Verdict == Allow { // what is forbidden may have changed meanwhile
		again, err := g.Decide(ctx, g.o.DB, p, t, input, a)
		if err != nil || again.Verdict == Deny {
			return again, err
		}
	}
	return d, nil
}

// request is what a person is shown.
func request(t tool.Tool, a tool.Access, d Decision) core.PermissionRequest {
	r := core.PermissionRequest{ToolName: t.Name, SuggestedGrants: d.Suggested}
	if r.SuggestedGrants == nil {
		r.SuggestedGrants = []core.SuggestedGrant{}
	}
	switch {
	case t.Kind == tool.Shell:
		r.Kind, r.Command = kindBash, a.Command
	case t.Kind == tool.Network:
		r.Kind, r.URL = kindWeb, a.URL
	case len(a.Write) > 0:
		r.Kind, r.Path = kindWrite, strings.Join(a.Write, ", ")
	default:
		r.Kind, r.Path = kindRead, strings.Join(a.Read, ", ")
	}
	return r
}

// outcome is what a settled ask means for the call.
func outcome(a Ask, d Decision) (Decision, core.PermissionResolved) {
	r := core.PermissionResolved{ID: a.ID, Decision: decisionDenied, By: a.DecidedBy}
	switch {
	case a.State == Decided && a.Decision == decisionGranted:
		r.Decision = decisionGranted
		return d.is(Allow, RulePerson, "Approved by "+a.DecidedBy+"."), r
	case a.State == Expired:
		r.Decision = decisionTimeout
		return d.is(Deny, RuleTimeout, "Nobody answered within 120 seconds, so the answer is no."), r
	case a.State == Decided:
		return d.is(Deny, RulePerson, "Refused by "+a.DecidedBy+". Do not try it by another way."), r
	}
	return d.is(Deny, RulePerson, "The question was withdrawn, so the answer is no."), r
}

// open stores an ask within the limits of its asker and shows it.
func (g *Guard) open(ctx context.Context, a Ask, patience time.Duration, body *payload, p Profile) (Ask, error) {
	var out Ask
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if err := limits(ctx, tx, p); err != nil {
			return err
		}
		a := a
		a.ID, a.ExpiresAt = newID(), tx.Time().Add(patience)
		if body.Request != nil {
			body.Request.ID, body.Request.ExpiresAt = a.ID, a.ExpiresAt
		}
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		a.Payload = string(b)
		if out, err = g.o.Desk.Open(ctx, tx, a); err != nil || g.o.Show == nil {
			return err
		}
		var req core.PermissionRequest
		if body.Request != nil {
			req = *body.Request
		}
		return g.o.Show.Open(ctx, tx, out, req, p)
	})
	if err != nil && core.KindOf(err) != core.Busy {
		return Ask{}, fmt.Errorf("ask: %w", err)
	}
	return out, err
}

// limits holds a guest to what one person may ask.
func limits(ctx context.Context, tx *store.Tx, p Profile) error {
	if p.Owner {
		return nil
	}
	var n struct {
		Open  int `db:"waiting"`
		Today int `db:"today"`
	}
	err := tx.Get(ctx, &n, `SELECT coalesce(sum(CASE WHEN state = 'open' AND expires_at > $1 THEN 1 ELSE 0 END), 0) AS waiting, count(*) AS today
		FROM asks WHERE asker = $2 AND created_at > $3 AND kind IN ('permission', 'question')`, core.Stamp(tx.Time()), p.User, core.Stamp(tx.Time().Add(-24*time.Hour)))
	switch {
	case err != nil:
		return fmt.Errorf("count asks: %w", err)
	case n.Open >= guestOpen:
		return core.Errorf(core.Busy, "%d questions for this person wait for an answer already: the answer is no for now.", n.Open)
	case n.Today >= guestDaily:
		return core.Errorf(core.Busy, "This person's tools have asked %d times in 24 hours: the answer is no until tomorrow.", n.Today)
	}
	return nil
}

// wait returns a settled ask. It is told by the Desk, and looks itself each
// second. When ctx ends the ask is closed, so that its buttons say so.
func (g *Guard) wait(ctx context.Context, a Ask, waiting func(bool)) (Ask, error) {
	settled, stop := g.o.Desk.watch(a.ID)
	defer stop()
	waiting(true)
	defer waiting(false)
	for {
		got, err := g.o.Desk.ByID(ctx, g.o.DB, a.ID)
		if ctx.Err() != nil {
			_, err := g.end(context.WithoutCancel(ctx), a.ID, Closed, texts.Text("ask_stopped"))
			if err != nil {
				g.o.Log.Error("an ask of a stopped run stays open until its time is over", "ask", a.ID, "error", err)
			}
			return Ask{}, context.Cause(ctx)
		}
		if core.KindOf(err) == core.NotFound { // its person was forgotten
			a.State = Closed
			return a, nil
		}
		if err != nil || got.State != Open {
			return got, err
		}
		left := got.ExpiresAt.Sub(g.o.Clock.Now())
		if left <= 0 {
			if got, err = g.end(ctx, a.ID, Expired, decisionTimeout); err == nil && got.State != Open || err != nil && ctx.Err() == nil {
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

// end settles an ask without a person's decision; somebody who was first wins.
// It gives the ask as it is then.
func (g *Guard) end(ctx context.Context, id, state, decision string) (Ask, error) {
	var out Ask
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		var rows []row
		if err := tx.Select(ctx, &rows, askColumns+` WHERE id = $1 AND state = 'open'`, id); err != nil {
			return err
		}
		ended, err := g.o.Desk.settle(ctx, tx, rows, state, decision)
		if err != nil {
			return err
		}
		if err := g.closed(ctx, tx, ended); err != nil {
			return err
		}
		out, err = g.o.Desk.ByID(ctx, tx, id)
		return err
	})
	return out, err
}

// closed has the outcome shown where asks were shown.
func (g *Guard) closed(ctx context.Context, tx *store.Tx, asks []Ask) error {
	for _, a := range asks {
		if g.o.Show == nil || a.Kind != KindPermission && a.Kind != KindQuestion {
			continue
		}
		if err := g.o.Show.Close(ctx, tx, a, told(a)); err != nil {
			return err
		}
	}
	return nil
}

// Told is a settled ask's outcome in words for whoever it was asked for: who
// decided is not theirs to know.
func Told(a Ask) string {
	switch {
	case a.State != Decided || a.Kind == KindQuestion:
		return told(a)
	case a.Decision == decisionGranted:
		return texts.Text("permission_granted_told")
	}
	return texts.Text("permission_refused_told")
}

// told is an ask's outcome in words.
func told(a Ask) string {
	switch {
	case a.State == Expired:
		return texts.Text("ask_unanswered")
	case a.State == Closed:
		return a.Decision
	case a.Kind == KindQuestion:
		return texts.Text("question_answered")
	case a.Decision == decisionGranted:
		return texts.Text("permission_granted", texts.With{"By": a.DecidedBy})
	}
	return texts.Text("permission_refused", texts.With{"By": a.DecidedBy})
}

// Abandon closes what an earlier process asked for its runs, so that a button
// of it says so and the person's next message is no answer to it. It is called
// once, before anything is taken, by the only process of this database.
func (g *Guard) Abandon(ctx context.Context) error {
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		var rows []row
		err := tx.Select(ctx, &rows, askColumns+` WHERE state = 'open' AND kind IN ('permission', 'question') ORDER BY created_at, id`)
		if err != nil {
			return err
		}
		asks, err := g.o.Desk.settle(ctx, tx, rows, Closed, texts.Text("ask_restarted"))
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

// Expire ends asks whose time is over (of a process that has ended, of a
// stranger's request) and says how many, at most 100 at a time.
func (g *Guard) Expire(ctx context.Context) (int, error) {
	n := 0
	err := g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		asks, err := g.o.Desk.expire(ctx, tx)
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
