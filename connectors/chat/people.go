package chat

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing"
)

// pair without a code has nothing to use. With one it never comes here: the
// gate has decided about that.
func (c *Chat) pair(_ context.Context, call command.Call) (command.Outcome, error) {
	if call.In.Group() {
		return said("code_in_group")
	}
	return said("pair_how")
}

// linkAccount gives the code by which somebody links an account on another
// platform. With a code it never comes here: the gate has decided about that.
func (c *Chat) linkAccount(ctx context.Context, call command.Call) (command.Outcome, error) {
	if call.In.Group() {
		return said("code_in_group")
	}
	user, err := c.user(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	code, expires, err := c.o.Book.NewLink(ctx, user, call.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	return said("link", texts.With{"Until": expires.UTC().Format("15:04"), "Code": code})
}

// invite makes an invitation to this bot.
func (c *Chat) invite(ctx context.Context, call command.Call) (command.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
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
	code, inv, err := c.o.Book.Invite(ctx, inv, by)
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: InvitationText(c.o.Link(inv.Bot, code), code, inv)}, nil
}

// InvitationText says what an invitation gives, and how it is used.
func InvitationText(link, code string, inv pairing.Invitation) string {
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

func (c *Chat) enable(ctx context.Context, call command.Call) (command.Outcome, error) {
	level, settings, err := c.groupWords(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	return c.place(ctx, call, func(by core.Actor) error {
		if err := c.o.Book.Enable(ctx, call.In.Bot, call.In.Place, call.In.PlaceName, level, by); err != nil {
			return err
		}
		if settings.Mention != pairing.MentionContext {
			c.o.Overheard.Forget(call.In.Address, true)
		}
		return c.o.Book.SetPlace(ctx, call.In.Bot, call.In.Place, settings, by)
	}, texts.Text("group_enabled", texts.With{"All": settings.Mention == pairing.MentionAll, "Context": settings.Mention == pairing.MentionContext, "Most": settings.RateN, "Per": settings.RatePer}))
}

// groupWords reads what follows /enable: a level, how the group is heard, and
// a rate; what is not said stays as it is, or was before the group was disabled.
func (c *Chat) groupWords(ctx context.Context, call command.Call) (level core.Trust, s pairing.PlaceSettings, err error) {
	if s, err = c.o.Book.Kept(ctx, c.o.DB, call.In.Bot, call.In.Place); err != nil {
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

func (c *Chat) disable(ctx context.Context, call command.Call) (command.Outcome, error) {
	return c.place(ctx, call, func(by core.Actor) error {
		c.o.Overheard.Forget(call.In.Address, true)
		return c.o.Book.Disable(ctx, call.In.Bot, call.In.Place, by)
	}, texts.Text("group_disabled"))
}

func (c *Chat) place(ctx context.Context, call command.Call, set func(core.Actor) error, done string) (command.Outcome, error) {
	if !call.In.Group() {
		return said("group_here")
	}
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	if err := set(by); err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: done}, nil
}

// setModel keeps which model answers: in a group for all of it.
func (c *Chat) setModel(ctx context.Context, call command.Call, model string) (write func(context.Context, *store.Tx) error, err error) {
	if !call.In.Group() {
		set, err := c.o.Sessions.Settings(ctx, c.o.DB, call.In.Address)
		set.Model = model
		ref := c.ref(0, call)
		return func(ctx context.Context, tx *store.Tx) error { return c.o.Sessions.SetSettings(ctx, tx, ref, set) }, err
	}
	by, err := c.owner(ctx, call)
	if err != nil {
		return nil, err
	}
	s, err := c.o.Book.Place(ctx, c.o.DB, call.In.Bot, call.In.Place)
	if err != nil {
		return nil, err
	}
	s.Model = model
	return nil, c.o.Book.SetPlace(ctx, call.In.Bot, call.In.Place, s, by)
}

// chosenModel is what people chose for the chat or group; "" is none.
func (c *Chat) chosenModel(ctx context.Context, call command.Call) (string, error) {
	if call.In.Group() {
		s, err := c.o.Book.Place(ctx, c.o.DB, call.In.Bot, call.In.Place)
		return s.Model, err
	}
	set, err := c.o.Sessions.Settings(ctx, c.o.DB, call.In.Address)
	return set.Model, err
}
