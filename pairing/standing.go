package pairing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/places"
)

// maxAdded limits notices about new groups to the owner, per hour; the panel lists all.
const maxAdded = 10

// stands records a change of the bot's own membership. A group that it was
// removed from is disabled, with its settings kept, so that no one brings it
// back into an enabled one; in every other case rights stay as they are. The
// owner is notified of each change once a day.
func (g *Gate) stands(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	w := texts.Words{Name: core.CleanName(in.PlaceName)}
	switch in.Standing {
	case core.StandingAdded:
		return g.added(ctx, tx, in, w)
	case core.StandingRemoved:
		return g.removed(ctx, tx, in, w)
	case core.StandingPromoted, core.StandingMuted:
		p, err := places.Enabled(ctx, tx, in.Bot, in.Place)
		if err != nil || p.Level == core.Stranger { // of a group that no one enabled no one wants to hear
			return err
		}
		return g.tellOwner(ctx, tx, in, in.Place, string(in.Standing), w)
	case core.StandingBlocked, core.StandingUnblocked:
		return g.blocked(ctx, tx, in)
	}
	return nil
}

// added notes a new group and notifies the owner, unless it is known: one that is
// enabled already was moved here, and one called like an enabled one becomes it
// in a moment (a group that turns into a supergroup has the bot added first).
func (g *Gate) added(ctx context.Context, tx *store.Tx, in *core.Inbound, w texts.Words) error {
	text, subject := "added_server", in.UpdateID
	if in.Place != "" {
		text, subject = "added", in.Place
		if err := g.Places.Seen(ctx, tx, in); err != nil {
			return err
		}
	}
	known, err := g.Places.Known(ctx, tx, in.Bot, in.Place, w.Name, maxAdded)
	if err != nil || known {
		return err
	}
	return g.tellOwner(ctx, tx, in, subject, text, w)
}

// removed disables the enabled ones among the places that the bot is out of,
// and forgets those that no one has decided about.
func (g *Gate) removed(ctx context.Context, tx *store.Tx, in *core.Inbound, w texts.Words) error {
	names, err := g.Places.Left(ctx, tx, in.Bot, append(slices.Clone(in.Places), in.Place))
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		w.Name = cmp.Or(w.Name, name)
	}
	return g.tellOwner(ctx, tx, in, in.UpdateID, "removed", w)
}

// blocked handles a user with access who blocked the bot: the owner is notified, and the
// user's running answers end.
func (g *Gate) blocked(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	p, err := g.person(ctx, tx, in)
	if err != nil || p.User == 0 || p.Blocked || !p.valid(core.Stamp(tx.Time())) {
		return err
	}
	if in.Standing == core.StandingBlocked {
		g.changes.Abort(tx, in.Bot, p.User)
	}
	return g.tellOwner(ctx, tx, in, in.Chat, string(in.Standing), texts.Words{Name: core.CleanName(in.From.Name), ID: in.From.ID})
}

// tellOwner sends the named text to the owner and the admins, once a day per subject,
// and not to the chat that it is about.
func (g *Gate) tellOwner(ctx context.Context, tx *store.Tx, in *core.Inbound, subject, text string, w texts.Words) error {
	chats, err := g.People.OwnerChats(ctx, tx, in.Bot)
	if err != nil {
		return err
	}
	if w.Name == "" {
		w.Name = "(no name)"
	}
	for i, to := range chats {
		if to.Chat == in.Chat {
			continue
		}
		key := fmt.Sprintf("notice:standing:%s:%s:%s:%s:%d", in.Bot, subject, text, tx.Time().UTC().Format(time.DateOnly), i)
		if err := g.notices.Post(ctx, tx, to, key, text, w); err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
	}
	return nil
}
