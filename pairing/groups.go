package pairing

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/places"
)

// speaks reports whether a bot that answers everything answers what is not addressed to it,
// or lets it change a message that waits. Commands are for other bots there.
func speaks(in *core.Inbound) bool {
	return (in.Kind == core.KindMessage || in.Kind == core.KindEdit) && !strings.HasPrefix(in.Text, "/") && (in.Text != "" || len(in.Files) > 0)
}

// overhears reports whether an unaddressed message is kept for the next prompt, and at
// which trust; messages of denied users are not.
func (g *Gate) overhears(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) (bool, core.Trust, error) {
	if s.place.Mention != places.MentionContext || in.Kind != core.KindMessage || !speaks(in) || in.Text == "" {
		return false, core.Stranger, nil
	}
	if s.valid(core.Stamp(tx.Time())) {
		return true, core.Least(s.Trust, s.place.Level), nil
	}
	cool, err := g.requests.Cooling(ctx, tx, in)
	return !cool, core.Stranger, err
}

// paced reports whether a message has ended its group's rate; the group is
// notified once in each period. The owner's and admins' don't count.
func (g *Gate) paced(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) (over bool, err error) {
	if in.Kind != core.KindMessage || s.Role.Manages() {
		return false, nil
	}
	over, period, err := g.Places.Flooded(ctx, tx, s.place, in)
	if over {
		err = g.notices.Reply(ctx, tx, in, "notice:group:"+in.Bot+":"+in.Place+":"+period, "group_flood", texts.Words{})
		if core.KindOf(err) == core.Conflict {
			err = nil
		}
	}
	return over, err
}
