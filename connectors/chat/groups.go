package chat

import (
	"context"
	"strconv"
	"strings"
	"time"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/places"
)

// groups handles /enable and /disable.
type groups struct {
	db        *store.DB
	groups    *places.Store
	overheard Overheard
}

// enable lets the members of a group use the bot.
func (g *groups) enable(ctx context.Context, r command.Request) (command.Outcome, error) {
	s, err := g.groups.Kept(ctx, g.db, r.In.Bot, r.In.Place)
	if err != nil {
		return command.Outcome{}, err
	}
	level, err := parseGroup(r.In.Text, &s)
	if err != nil {
		return command.Outcome{}, err
	}
	if err := g.groups.Enable(ctx, r.In.Bot, r.In.Place, r.In.PlaceName, level, r.By()); err != nil {
		return command.Outcome{}, err
	}
	if s.Mention != places.MentionContext {
		g.overheard.Forget(r.In.Address, true)
	}
	if err := g.groups.SetPlace(ctx, r.In.Bot, r.In.Place, s, r.By()); err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("group_enabled", texts.With{"All": s.Mention == places.MentionAll, "Context": s.Mention == places.MentionContext, "Most": s.RateN, "Per": s.RatePer})
}

// parseGroup parses what follows /enable into s: which messages the bot answers,
// and a rate. It returns the level, or zero. What is not given stays in s. What SetPlace
// would refuse is an error here, so that a refused command enables nothing.
func parseGroup(args string, s *places.Settings) (level core.Trust, err error) {
	for _, word := range strings.Fields(strings.ToLower(args)) {
		n, per, isRate := strings.Cut(word, "/")
		switch {
		case word == "mention":
			s.Mention = places.MentionOnly
		case word == places.MentionContext, word == places.MentionAll:
			s.Mention = word
		case word == "unlimited":
			s.RateN, s.RatePer = 0, 0
		case isRate:
			count, nerr := strconv.Atoi(n)
			d, derr := time.ParseDuration(per)
			if derr != nil || nerr != nil || count < 1 {
				return level, wrong(word, texts.Text("enable_rate"))
			}
			s.RateN, s.RatePer = count, d
		default:
			if level, err = core.ParseTrust(word); err != nil {
				return level, wrong(word, texts.Text("enable_how"))
			}
		}
	}
	return level, s.Check()
}

// wrong names an argument that is not accepted, and says what is.
func wrong(word, how string) error {
	return &core.Error{Kind: core.Invalid, Text: arguments.Named(word) + " " + how}
}

// disable ends the access of a group.
func (g *groups) disable(ctx context.Context, r command.Request) (command.Outcome, error) {
	g.overheard.Forget(r.In.Address, true)
	if err := g.groups.Disable(ctx, r.In.Bot, r.In.Place, r.By()); err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("group_disabled")
}
