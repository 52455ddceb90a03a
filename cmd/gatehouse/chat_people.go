package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing"
)

// pair without a code has nothing to use. With one it never comes here: the
// gate has decided about that.
func (c *chat) pair(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if call.In.Group() {
		return said("code_in_group")
	}
	return said("pair_how")
}

// linkAccount gives the code by which somebody links an account on another
// platform. With a code it never comes here: the gate has decided about that.
func (c *chat) linkAccount(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if call.In.Group() {
		return said("code_in_group")
	}
	user, err := c.user(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	code, expires, err := c.book.NewLink(ctx, user, call.In.Address)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("link", texts.With{"Until": expires.UTC().Format("15:04"), "Code": code})
}

// invite makes an invitation to this bot.
func (c *chat) invite(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if call.In.Group() {
		return said("invite_in_group")
	}
	inv := pairing.Invitation{Bot: call.In.Bot}
	for _, word := range strings.Fields(call.In.Text) {
		trust, err := core.ParseTrust(word)
		if n, nerr := strconv.Atoi(word); err != nil && nerr == nil && n > 0 {
			inv.UsesLeft = n
		} else if d, derr := span(word); err != nil && derr == nil {
			inv.Lasts = d
		} else if err != nil {
			return said("invite_how")
		} else {
			inv.Trust = trust
		}
	}
	code, inv, err := c.book.Invite(ctx, inv, by)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return dispatch.Outcome{Text: invitationText(c.link(inv.Bot, code), code, inv)}, nil
}

// invitationText says what an invitation gives, and how it is used.
func invitationText(link, code string, inv pairing.Invitation) string {
	lasts := ""
	if inv.Lasts > 0 {
		lasts = spanText(inv.Lasts)
	}
	return texts.Text("invitation", texts.With{"People": inv.UsesLeft, "Trust": inv.Trust, "Lasts": lasts,
		"Until": inv.ExpiresAt.UTC().Format("2 January 15:04"), "Link": link, "Code": code})
}

var errSpan = errors.New("a time is written as 30m, 24h or 7d")

// span is a time as people write it: 30m, 24h, 7d.
func span(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > 3650 {
			return 0, errSpan
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute {
		return 0, errSpan
	}
	return d, nil
}

func spanText(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return texts.Text("days", texts.With{"N": int(d / (24 * time.Hour))})
	case d%time.Hour == 0:
		return texts.Text("hours", texts.With{"N": int(d / time.Hour)})
	}
	return d.String()
}

// approval reads what follows a code: a level, a time.
func approval(words []string, now time.Time) (a core.Approval, err error) {
	for _, word := range words {
		if d, err := span(word); err == nil {
			a.ExpiresAt = now.Add(d)
		} else if a.Trust, err = core.ParseTrust(word); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (c *chat) enable(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	level, settings, err := c.groupWords(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return c.place(ctx, call, func(by core.Actor) error {
		if err := c.book.Enable(ctx, call.In.Bot, call.In.Place, call.In.PlaceName, level, by); err != nil {
			return err
		}
		if settings.Mention != pairing.MentionContext {
			c.overheard.Forget(call.In.Address, true)
		}
		return c.book.SetPlace(ctx, call.In.Bot, call.In.Place, settings, by)
	}, texts.Text("group_enabled", texts.With{"All": settings.Mention == pairing.MentionAll, "Context": settings.Mention == pairing.MentionContext, "Most": settings.RateN, "Per": settings.RatePer}))
}

// groupWords reads what follows /enable: a level, how the group is heard, and
// a rate; what is not said stays as it is, or was before the group was disabled.
func (c *chat) groupWords(ctx context.Context, call dispatch.Call) (level core.Trust, s pairing.PlaceSettings, err error) {
	if s, err = c.book.Kept(ctx, c.db, call.In.Bot, call.In.Place); err != nil {
		return level, s, err
	}
	for _, word := range strings.Fields(strings.ToLower(call.In.Text)) {
		n, per, rated := strings.Cut(word, "/")
		switch {
		case word == "mention":
			s.Mention = pairing.MentionOnly
		case word == pairing.MentionContext, word == pairing.MentionAll:
			s.Mention = word
		case word == "unlimited":
			s.RateN, s.RatePer = 0, 0
		case rated:
			var d time.Duration
			count, nerr := strconv.Atoi(n)
			if d, err = time.ParseDuration(per); err != nil || nerr != nil || count < 1 {
				return level, s, texts.Error(core.Invalid, "enable_rate")
			}
			s.RateN, s.RatePer = count, d
		default:
			if level, err = core.ParseTrust(word); err != nil {
				return level, s, texts.Error(core.Invalid, "enable_how")
			}
		}
	}
	return level, s, nil
}

func (c *chat) disable(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	return c.place(ctx, call, func(by core.Actor) error {
		c.overheard.Forget(call.In.Address, true)
		return c.book.Disable(ctx, call.In.Bot, call.In.Place, by)
	}, texts.Text("group_disabled"))
}

func (c *chat) place(ctx context.Context, call dispatch.Call, set func(core.Actor) error, done string) (dispatch.Outcome, error) {
	if !call.In.Group() {
		return said("group_here")
	}
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if err := set(by); err != nil {
		return dispatch.Outcome{}, err
	}
	return dispatch.Outcome{Text: done}, nil
}

// setModel keeps which model answers: in a group for all of it.
func (c *chat) setModel(ctx context.Context, call dispatch.Call, model string) (write func(context.Context, *store.Tx) error, err error) {
	if !call.In.Group() {
		set, err := c.sessions.Settings(ctx, c.db, call.In.Address)
		set.Model = model
		ref := c.ref(0, call)
		return func(ctx context.Context, tx *store.Tx) error { return c.sessions.SetSettings(ctx, tx, ref, set) }, err
	}
	by, err := c.owner(ctx, call)
	if err != nil {
		return nil, err
	}
	s, err := c.book.Place(ctx, c.db, call.In.Bot, call.In.Place)
	if err != nil {
		return nil, err
	}
	s.Model = model
	return nil, c.book.SetPlace(ctx, call.In.Bot, call.In.Place, s, by)
}

// chosenModel is what people chose for the chat or group; "" is none.
func (c *chat) chosenModel(ctx context.Context, call dispatch.Call) (string, error) {
	if call.In.Group() {
		s, err := c.book.Place(ctx, c.db, call.In.Bot, call.In.Place)
		return s.Model, err
	}
	set, err := c.sessions.Settings(ctx, c.db, call.In.Address)
	return set.Model, err
}
