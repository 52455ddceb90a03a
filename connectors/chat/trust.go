package chat

import (
	"context"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing"
)

// trust says or changes what tools may do in this conversation: whether they
// ask first, and at which level they work.
func (c *Chat) trust(ctx context.Context, call command.Call) (command.Outcome, error) {
	words := strings.Fields(strings.ToLower(call.In.Text))
	if call.In.Group() {
		if len(words) > 0 && words[0] == core.Full.String() {
			return said("trust_full_in_group")
		}
		return said("trust_in_group")
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
	return said("trust_how")
}

// trustHere is the level that the caller's turns have here, in words, and
// whether it is raised for a time.
func (c *Chat) trustHere(ctx context.Context, call command.Call) (words string, raised bool, err error) {
	s, any, err := c.o.Sessions.Current(ctx, c.o.DB, call.In.Address)
	if err != nil || !any {
		return call.Trust.String(), false, err
	}
	user, role, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil {
		return "", false, err
	}
	if r, ok, err := c.o.Book.Raised(ctx, c.o.DB, call.In.Address, s.ID, user); err != nil || ok && role == "owner" {
		return texts.Text("trust_until", texts.With{"Trust": core.Full, "Until": r.Ends.UTC().Format("15:04")}), true, err
	}
	return core.Least(call.Trust, s.TrustLevel).String(), false, nil
}

func (c *Chat) trustState(ctx context.Context, call command.Call) (command.Outcome, error) {
	auto, err := c.o.Sessions.TrustAutoIn(ctx, c.o.DB, call.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	here, raised, err := c.trustHere(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	return said("trust_state", texts.With{"Trust": here, "Raised": raised, "Auto": auto})
}

// here is the chat's conversation, begun where there is none yet.
func (c *Chat) here(ctx context.Context, tx *store.Tx, call command.Call) (session.Session, error) {
	user, role, err := c.o.Book.User(ctx, tx, call.In.From)
	if err != nil {
		return session.Session{}, err
	}
	ref := c.ref(user, call)
	ref.Admin = role == "owner" || role == "admin"
	s, _, _, err := c.o.Sessions.Resolve(ctx, tx, ref)
	return s, err
}

func (c *Chat) trustMode(ctx context.Context, call command.Call, auto bool) (command.Outcome, error) {
	err := c.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if _, err := c.here(ctx, tx, call); err != nil {
			return err
		}
		return c.o.Sessions.SetTrustAuto(ctx, tx, call.In.Address, auto)
	})
	if err != nil {
		return command.Outcome{}, err
	}
	if auto {
		return said("trust_auto", texts.With{"Trust": call.Trust})
	}
	return said("trust_ask")
}

// askFull asks the operator, in the panel, for trust full for a time. Nothing
// is changed by it.
func (c *Chat) askFull(ctx context.Context, call command.Call, words []string) (command.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	d := pairing.RaiseTime
	if len(words) > 0 {
		if d, err = time.ParseDuration(words[0]); err != nil || len(words) > 1 || d < pairing.RaiseMin || d > pairing.RaiseMax {
			return said("trust_full_how")
		}
	}
	return command.Outcome{
		Text: texts.Text("trust_full_asked", texts.With{"For": minutes(d), "Minutes": int(pairing.RaiseWait.Minutes())}),
		Write: func(ctx context.Context, tx *store.Tx) error {
			s, err := c.here(ctx, tx, call)
			if err != nil {
				return err
			}
			return c.o.Book.AskRaise(ctx, tx, pairing.Raise{Bot: call.In.Bot, Chat: call.In.Chat, User: by.User, Session: s.ID, For: d}, by)
		},
	}, nil
}

// minutes is a time of a few hours in words.
func minutes(d time.Duration) string {
	var parts []string
	if h := int(d / time.Hour); h > 0 {
		parts = append(parts, texts.Text("hours", texts.With{"N": h}))
	}
	if m := int(d % time.Hour / time.Minute); m > 0 {
		parts = append(parts, texts.Text("minutes", texts.With{"N": m}))
	}
	return strings.Join(parts, " ")
}

// lowerTrust ends trust full here, and lowers the conversation's ceiling where
// the level is below it.
func (c *Chat) lowerTrust(ctx context.Context, call command.Call, level core.Trust) (command.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	var text string
	err = c.o.DB.Tx(ctx, func(tx *store.Tx) error {
		s, err := c.here(ctx, tx, call)
		if err != nil {
			return err
		}
		ended, err := c.o.Book.DropRaises(ctx, tx, s.ID, by)
		if err != nil {
			return err
		}
		switch now := core.Least(call.Trust, s.TrustLevel); {
		case level > now:
			text = texts.Text("trust_not_raised", texts.With{"Trust": now})
		case level < s.TrustLevel:
			text = texts.Text("trust_lowered", texts.With{"Trust": level})
			return c.o.Sessions.Lower(ctx, tx, s.ID, level, by)
		case ended:
			text = texts.Text("trust_full_over", texts.With{"Trust": now})
		default:
			text = texts.Text("trust_is", texts.With{"Trust": now})
		}
		return nil
	})
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: text}, nil
}
