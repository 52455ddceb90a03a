package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	maxListed = 10 // conversations that /sessions shows
	shortID   = 8  // characters of an id that people type
)

// ref is the call's chat as sessions know it; in a group the conversation is nobody's own.
func (c *Chat) ref(user int64, call command.Call) session.Ref {
	return session.Ref{Address: call.In.Address, User: user, Trust: call.Trust, PlaceName: call.In.Where(), Source: c.o.Platform(call.In.Bot)}
}

// user is who calls, as this gateway knows them.
func (c *Chat) user(ctx context.Context, call command.Call) (int64, error) {
	user, _, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err == nil && user == 0 {
		err = texts.Error(core.Denied, "group_member")
	}
	return user, err
}

// manages lets everybody change their own chat; a group's is the owner's and the admins' to change.
func (c *Chat) manages(ctx context.Context, call command.Call) error {
	if !call.In.Group() {
		return nil
	}
	_, err := c.owner(ctx, call)
	if core.KindOf(err) == core.Denied {
		return texts.Error(core.Denied, "group_owner_only")
	}
	return err
}

func (c *Chat) fresh(ctx context.Context, call command.Call) (command.Outcome, error) {
	if err := c.manages(ctx, call); err != nil {
		return command.Outcome{}, err
	}
	word := strings.ToLower(strings.TrimSpace(call.In.Text))
	if word != "" && word != "keep" {
		return said("new_how")
	}
	to := call.In.Address
	old, any, err := c.o.Sessions.Current(ctx, c.o.DB, to)
	if err != nil {
		return command.Outcome{}, err
	}
	if call.In.Group() {
		c.o.Overheard.Forget(to, false)
	}
	if word == "keep" {
		return c.carryOver(ctx, call, old, any)
	}
	return command.Outcome{
		Text: texts.Text("new"),
		Write: func(ctx context.Context, tx *store.Tx) error {
			if err := c.o.Sessions.Unbind(ctx, tx, to); err != nil || !any {
				return err
			}
			if err := c.leaves(ctx, tx, call, old.ID); err != nil {
				return err
			}
			return c.o.Queue.Relane(ctx, tx, old.ID, lane(to), "session:"+old.ID)
		},
	}, nil
}

// carryOver begins a conversation that goes on from the chat's old one.
func (c *Chat) carryOver(ctx context.Context, call command.Call, old session.Session, any bool) (command.Outcome, error) {
	user, err := c.user(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	owner := user
	if call.In.Group() {
		owner = core.Operator
	}
	switch {
	case !any || old.MessageCount == 0:
		return said("keep_nothing")
	case old.User != owner:
		return said("keep_not_yours")
	case old.TrustLevel > call.Trust:
		return said("trust_too_high", texts.With{"Trust": old.TrustLevel, "Here": call.Trust})
	}
	ref := c.ref(user, call)
	ref.AgentType = old.AgentType
	return command.Outcome{
		Text: texts.Text("new_keeps"),
		Write: func(ctx context.Context, tx *store.Tx) error {
			if _, err := c.o.Sessions.Continue(ctx, tx, ref, old.ID); err != nil {
				return err
			}
			if err := c.leaves(ctx, tx, call, old.ID); err != nil {
				return err
			}
			return c.o.Queue.Relane(ctx, tx, old.ID, lane(ref.Address), "session:"+old.ID)
		},
	}, nil
}

// leaves ends the trust for a time of a conversation that a chat leaves.
func (c *Chat) leaves(ctx context.Context, tx *store.Tx, call command.Call, session string) error {
	if call.In.Group() {
		return nil
	}
	user, _, err := c.o.Book.User(ctx, tx, call.In.From)
	if err != nil {
		return err
	}
	_, err = c.o.Book.DropRaises(ctx, tx, session, core.Actor{User: user, Via: "chat"})
	return err
}

func lane(to core.Address) string { return to.Bot + "|" + to.Chat }

// list shows the person's newest conversations, with a button for each.
func (c *Chat) list(ctx context.Context, call command.Call) (command.Outcome, error) {
	if call.In.Group() {
		return said("sessions_in_group")
	}
	user, err := c.user(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	archived := false
	all, _, err := c.o.Sessions.List(ctx, session.Filter{User: user, Archived: &archived, Limit: 50})
	if err != nil {
		return command.Outcome{}, err
	}
	current, _, err := c.o.Sessions.Current(ctx, c.o.DB, call.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	var b strings.Builder
	o := offer{Command: "resume"}
	n := 0
	for _, s := range all {
		if n == maxListed || s.TrustLevel > call.Trust || s.MessageCount == 0 {
			continue
		}
		elsewhere, stays, err := c.whereabouts(ctx, call, s, current.ID)
		if err != nil {
			return command.Outcome{}, err
		}
		if stays {
			continue
		}
		n++
		title := s.Title
		if title == "" {
			title = texts.Text("untitled")
		}
		b.WriteString(texts.Text("sessions_line", texts.With{"ID": s.ID[:min(shortID, len(s.ID))], "Title": plain(title), "Messages": s.MessageCount,
			"Ago": ago(c.o.Clock.Now().Sub(s.LastAccessed)), "This": s.ID == current.ID, "Elsewhere": elsewhere}) + "\n")
		if s.ID != current.ID {
			o.add(title, s.ID)
		}
	}
	if n == 0 {
		return said("sessions_none")
	}
	return c.offer(ctx, call, texts.Text("sessions")+"\n\n"+b.String()+"\n"+texts.Text("sessions_end"), o)
}

// whereabouts names the platform where a conversation is held now, if not here
// or nowhere; one that a group has stays there.
func (c *Chat) whereabouts(ctx context.Context, call command.Call, s session.Session, current string) (platform string, stays bool, err error) {
	if s.ID == current {
		return "", false, nil
	}
	at, bound, err := c.o.Sessions.Bound(ctx, c.o.DB, s.ID)
	switch {
	case err != nil || !bound:
		return "", false, err
	case at.Group():
		return "", true, nil
	case at.Bot != call.In.Bot:
		return c.o.Platform(at.Bot), false, nil
	}
	return "", false, nil
}

// ago is a time in words.
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

// resume goes on here with one of the person's own conversations, wherever it
// was held. It happens in the lines of both chats: this command stands in
// one, and the other must be at rest.
func (c *Chat) resume(ctx context.Context, call command.Call) (command.Outcome, error) {
	if call.In.Group() {
		return said("resume_in_group")
	}
	if strings.TrimSpace(call.In.Text) == "" {
		return c.list(ctx, call)
	}
	user, err := c.user(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	s, err := c.o.Sessions.Own(ctx, c.o.DB, user, call.In.Text)
	if core.KindOf(err) == core.NotFound {
		return said("resume_unknown")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	if s.TrustLevel > call.Trust {
		return said("trust_too_high", texts.With{"Trust": s.TrustLevel, "Here": call.Trust})
	}
	ref := c.ref(user, call)
	err = c.o.DB.Tx(ctx, func(tx *store.Tx) error {
		old, any, err := c.o.Sessions.Current(ctx, tx, ref.Address)
		if err == nil {
			err = c.move(ctx, tx, ref, s.ID)
		}
		if err == nil && any {
			err = c.leaves(ctx, tx, call, old.ID)
		}
		return err
	})
	if errors.Is(err, errHere) {
		return said("resume_here")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	title := s.Title
	if title != "" {
		title = plain(title)
	}
	return said("resumed", texts.With{"Title": title, "Messages": s.MessageCount})
}

var errHere = errors.New("the session is bound here already")

// move binds the session id to ref's chat, in whose lane the caller stands.
func (c *Chat) move(ctx context.Context, tx *store.Tx, ref session.Ref, id string) error {
	here := lane(ref.Address)
	lanes := []string{"session:" + id}
	at, bound, err := c.o.Sessions.Bound(ctx, tx, id)
	if err != nil {
		return err
	}
	if bound {
		if at.Bot == ref.Bot && at.Chat == ref.Chat {
			return errHere
		}
		if at.Group() {
			return texts.Error(core.Conflict, "resume_of_group")
		}
		lanes = append(lanes, lane(at))
	}
	for _, l := range lanes {
		held, err := c.o.Queue.Held(ctx, tx, l)
		if err != nil {
			return err
		}
		if held {
			return texts.Error(core.Conflict, "resume_busy")
		}
	}
	old, any, err := c.o.Sessions.Current(ctx, tx, ref.Address)
	if err != nil {
		return err
	}
	if any {
		if err := c.o.Queue.Relane(ctx, tx, old.ID, here, "session:"+old.ID); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := c.o.Queue.Relane(ctx, tx, id, l, here); err != nil {
			return err
		}
	}
	return c.o.Sessions.Rebind(ctx, tx, ref, id)
}

// compact sums up the older part of the conversation now.
func (c *Chat) compact(ctx context.Context, call command.Call) (command.Outcome, error) {
	if err := c.manages(ctx, call); err != nil {
		return command.Outcome{}, err
	}
	user, err := c.user(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	s, any, err := c.o.Sessions.Current(ctx, c.o.DB, call.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	if !any || !call.In.Group() && s.User != user {
		return said("no_conversation")
	}
	model, err := c.chosenModel(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	_, owner := c.owner(ctx, call)
	t := &orchestrator.Turn{Run: fmt.Sprintf("compact:%d", call.Seq), Attempt: 1, Session: s, Rows: []core.Inbound{*call.In},
		User: user, Admin: owner == nil, Trust: core.Least(call.Trust, s.TrustLevel), Model: model}
	before, after, write, err := c.o.Runs.Compact(ctx, t)
	if core.KindOf(err) != core.Other {
		return command.Outcome{Text: core.TextOf(err), Write: write}, nil
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: texts.Text("compacted", texts.With{"Before": before, "After": after}), Write: write}, nil
}
