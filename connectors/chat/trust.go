package chat

import (
	"context"
	"strings"
	"time"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/permission/raise"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// trust handles /trust: what tools may do in the chat's conversation.
type trust struct {
	db    *store.DB
	bound *bound
	modes *session.Store
	clock core.Clock
	zone  func(ctx context.Context, user int64) (*time.Location, error)
}

// run shows or changes whether tools ask first, and the level at which they run.
func (t *trust) run(ctx context.Context, r command.Request) (command.Outcome, error) {
	words := strings.Fields(strings.ToLower(r.In.Text))
	if len(words) == 0 {
		return t.show(ctx, r)
	}
	switch level, err := core.ParseTrust(words[0]); {
	case len(words) > 1 && (words[0] == "auto" || words[0] == "ask" || err == nil && level != core.Full):
		return arguments.Wrong(words[1], texts.Text("trust_how"))
	case words[0] == "auto" || words[0] == "ask":
		return t.setMode(ctx, r, words[0] == "auto")
	case err == nil && level == core.Full:
		return t.askFull(r, words[1:])
	case err == nil:
		return t.lower(ctx, r, level)
	}
	return arguments.Wrong(words[0], texts.Text("trust_how"))
}

// level returns the text of the level at which the sender's turns run in this
// chat, and whether it is raised for a time.
func (t *trust) level(ctx context.Context, r command.Request) (words string, raised bool, err error) {
	s, any, err := t.bound.sessions.Current(ctx, t.db, r.In.Address)
	if err != nil || !any {
		return r.Trust.String(), false, err
	}
	if raise, ok, err := t.bound.raises.Held(ctx, t.db, r.In.Address, s.ID, r.User); err != nil || ok && r.Role == core.RoleOwner {
		if err != nil {
			return "", true, err
		}
		zone, err := t.zone(ctx, r.User)
		if err != nil {
			return "", true, err
		}
		return texts.Text("trust_until", texts.With{"Trust": core.Full, "Until": texts.Time(raise.Ends, t.clock.Now(), zone)}), true, nil
	}
	return core.Least(r.Trust, s.TrustLevel).String(), false, nil
}

func (t *trust) show(ctx context.Context, r command.Request) (command.Outcome, error) {
	auto, err := t.modes.TrustAutoIn(ctx, t.db, r.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	level, raised, err := t.level(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("trust_state", texts.With{"Trust": level, "Raised": raised, "Auto": auto})
}

// setMode sets whether tools ask first.
func (t *trust) setMode(ctx context.Context, r command.Request, auto bool) (command.Outcome, error) {
	err := t.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := t.bound.resolve(ctx, tx, r); err != nil {
			return err
		}
		return t.modes.SetTrustAuto(ctx, tx, r.In.Address, auto)
	})
	if err != nil {
		return command.Outcome{}, err
	}
	if auto {
		return command.Respond("trust_auto", texts.With{"Trust": r.Trust})
	}
	return command.Respond("trust_ask")
}

// askFull asks the operator, in the panel, for trust full for a time. It changes
// nothing until they confirm.
func (t *trust) askFull(r command.Request, words []string) (command.Outcome, error) {
	d := raise.Time
	if len(words) > 0 {
		var err error
		if d, err = time.ParseDuration(words[0]); err != nil || len(words) > 1 || d < raise.Min || d > raise.Max {
			return arguments.Wrong(strings.Join(words, " "), texts.Text("trust_full_how"))
		}
	}
	return command.Outcome{
		Text: texts.Text("trust_full_asked", texts.With{"For": hoursAndMinutes(d), "Minutes": int(raise.Wait.Minutes())}),
		Write: func(ctx context.Context, tx *store.Tx) error {
			s, err := t.bound.resolve(ctx, tx, r)
			if err != nil {
				return err
			}
			return t.bound.raises.Ask(ctx, tx, raise.Raise{Bot: r.In.Bot, Chat: r.In.Chat, User: r.User, Session: s.ID, For: d}, r.By())
		},
	}, nil
}

// hoursAndMinutes returns a duration of a few hours as text.
func hoursAndMinutes(d time.Duration) string {
	var parts []string
	if h := int(d / time.Hour); h > 0 {
		parts = append(parts, texts.Text("hours", texts.With{"N": h}))
	}
	if m := int(d % time.Hour / time.Minute); m > 0 {
		parts = append(parts, texts.Text("minutes", texts.With{"N": m}))
	}
	return strings.Join(parts, " ")
}

// lower ends trust full in this conversation, and lowers its ceiling to level.
// It never raises the ceiling.
func (t *trust) lower(ctx context.Context, r command.Request, level core.Trust) (command.Outcome, error) {
	var text string
	err := t.db.Tx(ctx, func(tx *store.Tx) error {
		s, err := t.bound.resolve(ctx, tx, r)
		if err != nil {
			return err
		}
		ended, err := t.bound.raises.Drop(ctx, tx, s.ID, r.By())
		if err != nil {
			return err
		}
		switch now := core.Least(r.Trust, s.TrustLevel); {
		case level > now:
			text = texts.Text("trust_not_raised", texts.With{"Trust": now})
		case level < s.TrustLevel:
			text = texts.Text("trust_lowered", texts.With{"Trust": level})
			return t.modes.Lower(ctx, tx, s.ID, level, r.By())
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
