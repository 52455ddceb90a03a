package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	maxListed = 10 // conversations that /sessions shows
	shortID   = 8  // characters of an id that users type
)

// sessionLane returns the lane of a conversation that no chat has.
func sessionLane(id string) string { return core.LaneOf(core.Address{Bot: core.APIBot, Chat: id}) }

// Compacter summarizes the older part of a conversation. It returns the number
// of tokens before and after, and what to write with the result.
type Compacter interface {
	Compact(ctx context.Context, t *orchestrator.Turn) (before, after int, write func(context.Context, *store.Tx) error, err error)
}

// Overheard keeps the messages of a group that were not addressed to the bot.
type Overheard interface {
	// Forget drops those of a topic, or with all those of the whole group.
	Forget(at core.Address, all bool)
}

// conversations handles /new, /sessions, /resume and /compact.
type conversations struct {
	db        *store.DB
	clock     core.Clock
	bound     *bound
	lanes     *queue.Queue
	compacter Compacter
	overheard Overheard
	asks      *ask.Buttons
	chosen    *chosenModel
}

// begin leaves the chat's conversation, so that the next message begins one.
func (c *conversations) begin(ctx context.Context, r command.Request) (command.Outcome, error) {
	args := strings.ToLower(r.Args())
	if args != "" && args != "keep" {
		return arguments.Wrong(r.Args(), texts.Text("new_how"))
	}
	old, any, err := c.bound.sessions.Current(ctx, c.db, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	if r.In.Group() {
		c.overheard.Forget(r.In.Address, false)
	}
	if args == "keep" {
		return c.carryOver(r, old, any)
	}
	return command.Outcome{
		Text: texts.Text("new"),
		Write: func(ctx context.Context, tx *store.Tx) error {
			if err := c.bound.sessions.Unbind(ctx, tx, r.In.Address); err != nil || !any {
				return err
			}
			return c.leave(ctx, tx, r, old.ID)
		},
	}, nil
}

// carryOver begins a conversation that continues from the chat's old one.
func (c *conversations) carryOver(r command.Request, old session.Session, any bool) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	owner := r.User
	if r.In.Group() {
		owner = core.Operator
	}
	switch {
	case !any || old.MessageCount == 0:
		return command.Respond("keep_nothing")
	case old.User != owner:
		return command.Respond("keep_not_yours")
	case old.TrustLevel > r.Trust:
		return command.Respond("trust_too_high", texts.With{"Trust": old.TrustLevel, "Here": r.Trust})
	}
	ref := c.bound.ref(r)
	ref.AgentType = old.AgentType
	return command.Outcome{
		Text: texts.Text("new_keeps"),
		Write: func(ctx context.Context, tx *store.Tx) error {
			if _, err := c.bound.sessions.Continue(ctx, tx, ref, old.ID); err != nil {
				return err
			}
			return c.leave(ctx, tx, r, old.ID)
		},
	}, nil
}

// leave ends what the chat's old conversation had of the chat: raised trust, and
// the lane for messages that wait over HTTP.
func (c *conversations) leave(ctx context.Context, tx *store.Tx, r command.Request, old string) error {
	if err := c.bound.dropRaises(ctx, tx, r, old); err != nil {
		return err
	}
	return c.lanes.Relane(ctx, tx, old, r.Lane, sessionLane(old))
}

// list shows the sender's newest conversations, with a button for each.
func (c *conversations) list(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	archived := false
	all, _, err := c.bound.sessions.List(ctx, session.Filter{User: r.User, Archived: &archived, Limit: 50})
	if err != nil {
		return command.Outcome{}, err
	}
	current, _, err := c.bound.sessions.Current(ctx, c.db, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	var b strings.Builder
	o := ask.Offer{Command: "resume"}
	n := 0
	for _, s := range all {
		if n == maxListed || s.TrustLevel > r.Trust || s.MessageCount == 0 {
			continue
		}
		elsewhere, inGroup, err := c.whereabouts(ctx, r, s, current.ID)
		if err != nil {
			return command.Outcome{}, err
		}
		if inGroup {
			continue
		}
		n++
		title := s.Title
		if title == "" {
			title = texts.Text("untitled")
		}
		b.WriteString(texts.Text("sessions_line", texts.With{"ID": s.ID[:min(shortID, len(s.ID))], "Title": texts.Plain(title), "Messages": s.MessageCount,
			"Ago": ago(c.clock.Now().Sub(s.LastAccessed)), "This": s.ID == current.ID, "Elsewhere": elsewhere}) + "\n")
		if s.ID != current.ID {
			o.Add(title, s.ID)
		}
	}
	if n == 0 {
		return command.Respond("sessions_none")
	}
	return c.asks.Offer(r, texts.Text("sessions")+"\n\n"+b.String()+"\n"+texts.Text("sessions_end"), o)
}

// whereabouts returns the platform of the chat that has a conversation, if it is
// another bot's, and whether that chat is a group, which keeps it.
func (c *conversations) whereabouts(ctx context.Context, r command.Request, s session.Session, current string) (platform string, inGroup bool, err error) {
	if s.ID == current {
		return "", false, nil
	}
	at, isBound, err := c.bound.sessions.Bound(ctx, c.db, s.ID)
	switch {
	case err != nil || !isBound:
		return "", false, err
	case at.Group():
		return "", true, nil
	case at.Bot != r.In.Bot:
		return c.bound.platform(at.Bot), false, nil
	}
	return "", false, nil
}

// ago returns how long ago something was.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return texts.Text("just_now")
	case d < time.Hour:
		return texts.Text("minutes_ago", texts.With{"N": int(d.Minutes())})
	case d < 48*time.Hour:
		return texts.Text("hours_ago", texts.With{"N": int(d.Hours())})
	}
	return texts.Text("days_ago", texts.With{"N": int(d.Hours() / 24)})
}

// resume continues one of the sender's own conversations in this chat, from
// whichever chat had it.
func (c *conversations) resume(ctx context.Context, r command.Request) (command.Outcome, error) {
	if r.Args() == "" {
		return c.list(ctx, r)
	}
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	s, err := c.bound.sessions.Own(ctx, c.db, r.User, r.In.Text)
	if core.KindOf(err) == core.NotFound {
		return command.Respond("resume_unknown", texts.With{"ID": texts.Excerpt(r.Args())})
	}
	if err != nil {
		return command.Outcome{}, err
	}
	if s.TrustLevel > r.Trust {
		return command.Respond("trust_too_high", texts.With{"Trust": s.TrustLevel, "Here": r.Trust})
	}
	err = c.db.Tx(ctx, func(tx *store.Tx) error {
		old, any, err := c.bound.sessions.Current(ctx, tx, r.In.Address)
		if err == nil {
			err = c.move(ctx, tx, c.bound.ref(r), old.ID, s.ID)
		}
		if err == nil && any {
			err = c.bound.dropRaises(ctx, tx, r, old.ID)
		}
		return err
	})
	if errors.Is(err, errHere) {
		return command.Respond("resume_here")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	title := s.Title
	if title != "" {
		title = texts.Plain(title)
	}
	return command.Respond("resumed", texts.With{"Title": title, "Messages": s.MessageCount})
}

var errHere = errors.New("the session is bound to this chat already")

// move binds the session id to ref's chat in place of old ("" for none). The
// caller runs in that chat's lane; the lane that the session leaves must be idle.
func (c *conversations) move(ctx context.Context, tx *store.Tx, ref session.Ref, old, id string) error {
	here := core.LaneOf(ref.Address)
	lanes := []string{sessionLane(id)}
	at, isBound, err := c.bound.sessions.Bound(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case isBound && at.Bot == ref.Bot && at.Chat == ref.Chat:
		return errHere
	case isBound && at.Group():
		return texts.Error(core.Conflict, "resume_of_group")
	case isBound:
		lanes = append(lanes, core.LaneOf(at))
	}
	for _, l := range lanes {
		held, err := c.lanes.Held(ctx, tx, l)
		if err != nil {
			return err
		}
		if held {
			return texts.Error(core.Conflict, "resume_busy")
		}
	}
	if old != "" {
		if err := c.lanes.Relane(ctx, tx, old, here, sessionLane(old)); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := c.lanes.Relane(ctx, tx, id, l, here); err != nil {
			return err
		}
	}
	return c.bound.sessions.Rebind(ctx, tx, ref, id)
}

// compact summarizes the older part of the chat's conversation.
func (c *conversations) compact(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	s, any, err := c.bound.sessions.Current(ctx, c.db, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	if !any || !r.In.Group() && s.User != r.User {
		return command.Respond("no_conversation")
	}
	model, err := c.chosen.get(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	t := &orchestrator.Turn{Run: fmt.Sprintf("compact:%d", r.Seq), Attempt: 1, Session: s, Rows: []core.Inbound{*r.In},
		User: r.User, Admin: r.Manages(), Trust: core.Least(r.Trust, s.TrustLevel), Model: model}
	before, after, write, err := c.compacter.Compact(ctx, t)
	if core.KindOf(err) != core.Other {
		return command.Outcome{Text: core.TextOf(err), Write: write}, nil
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: texts.Text("compacted", texts.With{"Before": before, "After": after}), Write: write}, nil
}
