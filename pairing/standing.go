package pairing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// maxAdded is of how many new groups in an hour the owner is told in chat; the
// panel lists all.
const maxAdded = 10

// stands takes in a change of the bot's own standing. A group that it was
// removed from is disabled, with its settings kept, so that nobody brings it
// back into an enabled one; in every other case rights stay as they are. The
// owner is told of each change once a day.
func (b *Book) stands(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	w := texts.Words{Name: core.CleanName(in.PlaceName)}
	switch in.Standing {
	case core.StandingAdded:
		return b.added(ctx, tx, in, w)
	case core.StandingRemoved:
		return b.removed(ctx, tx, in, w)
	case core.StandingPromoted, core.StandingMuted:
		p, err := placeOf(ctx, tx, in.Bot, in.Place)
		if err != nil || p.Level == core.Stranger { // of a group that nobody enabled nobody wants to hear
			return err
		}
		return b.tellOwner(ctx, tx, in, in.Place, string(in.Standing), w)
	case core.StandingBlocked, core.StandingUnblocked:
		return b.blocked(ctx, tx, in)
	}
	return nil
}

// added notes a new group and tells the owner, unless it is known: one that is
// enabled already was moved here, and one called like an enabled one becomes it
// in a moment (a group that turns into a supergroup has the bot added first).
func (b *Book) added(ctx context.Context, tx *store.Tx, in *core.Inbound, w texts.Words) error {
	text, subject := "added_server", in.UpdateID
	if in.Place != "" {
		text, subject = "added", in.Place
		if err := b.seen(ctx, tx, in); err != nil {
			return err
		}
	}
	var quiet bool
	err := tx.Get(ctx, &quiet, `SELECT EXISTS (SELECT 1 FROM places WHERE bot = $1 AND enabled = 1 AND (place = $2 OR name = $3))
			OR (SELECT count(*) FROM places WHERE bot = $1 AND "by" = '' AND enabled = 0 AND at > $4) > $5`,
		in.Bot, in.Place, w.Name, core.Stamp(tx.Time().Add(-time.Hour)), maxAdded)
	if err != nil || quiet {
		return err
	}
	return b.tellOwner(ctx, tx, in, subject, text, w)
}

// removed disables the enabled ones among the places that the bot is out of,
// and forgets those that nobody has decided about.
func (b *Book) removed(ctx context.Context, tx *store.Tx, in *core.Inbound, w texts.Words) error {
	var rows []struct {
		Place   string `db:"place"`
		Name    string `db:"name"`
		Enabled bool   `db:"enabled"`
	}
	err := tx.Select(ctx, &rows, `SELECT place, name, enabled FROM places WHERE bot = $1 AND (enabled = 1 OR "by" = '') ORDER BY place`, in.Bot)
	if err != nil {
		return err
	}
	by, news := core.Actor{Via: b.platform(in.Bot)}, false
	for _, r := range rows {
		if r.Place != in.Place && !slices.Contains(in.Places, r.Place) {
			continue
		}
		if !r.Enabled {
			if _, err := tx.Exec(ctx, `DELETE FROM places WHERE bot = $1 AND place = $2`, in.Bot, r.Place); err != nil {
				return err
			}
			continue
		}
		if _, err := tx.Exec(ctx, `UPDATE places SET enabled = 0, "by" = $1, at = $2 WHERE bot = $3 AND place = $4`, who(by), core.Stamp(tx.Time()), in.Bot, r.Place); err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "place.disable", in.Bot+":"+r.Place, map[string]any{"why": "removed"}); err != nil {
			return err
		}
		if news = true; w.Name == "" {
			w.Name = r.Name
		}
	}
	b.after(tx, in.Bot, "", "people")
	if !news {
		return nil
	}
	return b.tellOwner(ctx, tx, in, in.UpdateID, "removed", w)
}

// blocked concerns people with access alone: the owner is told, and what is
// being made for somebody who has blocked the bot ends.
func (b *Book) blocked(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	p, err := b.person(ctx, tx, in)
	if err != nil || p.User == 0 || p.Blocked || !p.valid(core.Stamp(tx.Time())) {
		return err
	}
	if in.Standing == core.StandingBlocked {
		b.abort(tx, in.Bot, p.User)
	}
	return b.tellOwner(ctx, tx, in, in.Chat, string(in.Standing), texts.Words{Name: core.CleanName(in.From.Name), ID: in.From.ID})
}

// tellOwner says the named text to the owner and the admins, once a day for each
// subject; not in the chat that it is about.
func (b *Book) tellOwner(ctx context.Context, tx *store.Tx, in *core.Inbound, subject, text string, w texts.Words) error {
	chats, err := b.OwnerChats(ctx, tx, in.Bot)
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
		if err := b.post(ctx, tx, to, key, text, w); err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
	}
	return nil
}
