package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/pairing"
)

// trust says or changes what tools may do in this conversation: whether they
// ask first, and at which level they work.
func (c *chat) trust(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	words := strings.Fields(strings.ToLower(call.In.Text))
	if call.In.Group() {
		if len(words) > 0 && words[0] == core.Full.String() {
			return said("A group is never at trust full: ask for it in a direct message.")
		}
		return said("In a group tools always ask.")
	}
	if len(words) == 0 {
		return c.trustState(ctx, call)
	}
	switch level, err := core.ParseTrust(words[0]); {
	case words[0] == "auto" || words[0] == "ask":
		return c.trustMode(ctx, call, words[0] == "auto")
	case err == nil && level == core.Full:
		return c.askFull(ctx, call, words[1:])
	case err == nil:
		return c.lowerTrust(ctx, call, level)
	}
	return said("Write `/trust` followed by `auto`, `ask`, `full 15m`, `vault` or `sandboxed`.")
}

// trustHere is the level that the caller's turns have here, in words.
func (c *chat) trustHere(ctx context.Context, call dispatch.Call) (string, error) {
	s, any, err := c.sessions.Current(ctx, c.db, call.In.Address)
	if err != nil || !any {
		return call.Trust.String(), err
	}
	user, role, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return "", err
	}
	if r, ok, err := c.book.Raised(ctx, c.db, call.In.Address, s.ID, user); err != nil || ok && role == "owner" {
		return fmt.Sprintf("%s until %s UTC", core.Full, r.Ends.UTC().Format("15:04")), err
	}
	return core.Least(call.Trust, s.TrustLevel).String(), nil
}

func (c *chat) trustState(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	auto, err := c.sessions.TrustAutoIn(ctx, c.db, call.In.Address)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	here, err := c.trustHere(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	state := "tools ask you first; `/trust auto` lets them go on without asking"
	switch {
	case strings.HasPrefix(here, core.Full.String()+" "):
		state = "tools ask you first; `/trust vault` ends trust full"
	case auto:
		state = "tools go on without asking; `/trust ask` has them ask you first"
	}
	return said("You are at trust %s here. In this conversation %s.", here, state)
}

// here is the chat's conversation, begun where there is none yet.
func (c *chat) here(ctx context.Context, tx *store.Tx, call dispatch.Call) (session.Session, error) {
	user, role, err := c.book.User(ctx, tx, call.In.From)
	if err != nil {
		return session.Session{}, err
	}
	ref := c.ref(user, call)
	ref.Admin = role == "owner" || role == "admin"
	s, _, _, err := c.sessions.Resolve(ctx, tx, ref)
	return s, err
}

func (c *chat) trustMode(ctx context.Context, call dispatch.Call, auto bool) (dispatch.Outcome, error) {
	err := c.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := c.here(ctx, tx, call); err != nil {
			return err
		}
		return c.sessions.SetTrustAuto(ctx, tx, call.In.Address, auto)
	})
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if auto {
		return said("In this conversation tools go on without asking, within trust %s. What is forbidden stays forbidden. `/trust ask` undoes this, and so does `/new`.", call.Trust)
	}
	return said("In this conversation tools ask you first.")
}

// askFull asks the operator, in the panel, for trust full for a time. Nothing
// is changed by it.
func (c *chat) askFull(ctx context.Context, call dispatch.Call, words []string) (dispatch.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	d := pairing.RaiseTime
	if len(words) > 0 {
		if d, err = time.ParseDuration(words[0]); err != nil || len(words) > 1 || d < pairing.RaiseMin || d > pairing.RaiseMax {
			return said("Trust full is given for a time from 1 minute to 4 hours: write `/trust full 15m` or `/trust full 2h`.")
		}
	}
	return dispatch.Outcome{
		Text: fmt.Sprintf("Nothing has changed yet. To have trust full in this conversation for %s, confirm it in the admin panel, on the page Approvals, within %d minutes. Tools here then reach files outside of the vault and run commands without the sandbox; each call asks you first.",
			minutes(d), int(pairing.RaiseWait.Minutes())),
		Write: func(ctx context.Context, tx *store.Tx) error {
			s, err := c.here(ctx, tx, call)
			if err != nil {
				return err
			}
			return c.book.AskRaise(ctx, tx, pairing.Raise{Bot: call.In.Bot, Chat: call.In.Chat, User: by.User, Session: s.ID, For: d}, by)
		},
	}, nil
}

// minutes is a time of a few hours in words.
func minutes(d time.Duration) string {
	h, m := int(d/time.Hour), int(d%time.Hour/time.Minute)
	parts := []string{}
	for _, p := range []struct {
		n    int
		name string
	}{{h, "hour"}, {m, "minute"}} {
		switch p.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+p.name)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", p.n, p.name))
		}
	}
	return strings.Join(parts, " ")
}

// lowerTrust ends trust full here, and lowers the conversation's ceiling where
// the level is below it.
func (c *chat) lowerTrust(ctx context.Context, call dispatch.Call, level core.Trust) (dispatch.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	var text string
	err = c.db.Tx(ctx, func(tx *store.Tx) error {
		s, err := c.here(ctx, tx, call)
		if err != nil {
			return err
		}
		ended, err := c.book.DropRaises(ctx, tx, s.ID, by)
		if err != nil {
			return err
		}
		switch now := core.Least(call.Trust, s.TrustLevel); {
		case level > now:
			text = fmt.Sprintf("This conversation is at trust %s, and is not raised again. `/new` begins another.", now)
		case level < s.TrustLevel:
			text = fmt.Sprintf("This conversation is at trust %s from now on. `/new` begins another.", level)
			return c.sessions.Lower(ctx, tx, s.ID, level, by)
		case ended:
			text = fmt.Sprintf("Trust full is over: you are at trust %s here.", now)
		default:
			text = fmt.Sprintf("You are at trust %s here.", now)
		}
		return nil
	})
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("%s", text)
}
