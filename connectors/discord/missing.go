package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// missing stores that the bot was removed from servers while no session lived:
// nobody tells of that later. Such a server holds channels in which somebody has
// written to the bot, READY does not name it among those that the bot is in, and
// one of its channels is closed to the bot. A server with an outage is named.
func (r *receiver) missing(ctx context.Context, now *wire.Ready) error {
	if now.Guilds.V == nil {
		return nil
	}
	known := map[string][]string{} // channels by guild; bounded by the marks
	for id, m := range r.marks.All() {
		if m.Guild != "" {
			known[m.Guild] = append(known[m.Guild], id)
		}
	}
	for _, g := range now.Guilds.V {
		delete(known, g.ID)
	}
	var page []core.Inbound
	for g, channels := range known {
		if !r.bot.closed(ctx, channels[0]) {
			continue
		}
		page = append(page, core.Inbound{UpdateID: "missing:" + g + ":" + now.Session, Address: core.Address{Bot: r.bot.o.Name}, Kind: core.KindService,
			From: core.Peer{Platform: Platform}, At: r.bot.o.Clock.Now(), Text: "left a server", Standing: core.StandingRemoved, Places: r.marked(g)})
	}
	if len(page) == 0 {
		return nil
	}
	if err := r.store(ctx, page, nil); err != nil {
		return err
	}
	r.remember(page)
	return nil
}

// closed reports whether the platform says that a channel is gone, or not for
// the bot to see; false where it says nothing.
func (b *Bot) closed(ctx context.Context, channel string) bool {
	f := b.api.Call(ctx, "GET", "/channels/"+channel, nil, nil)
	return f.Hidden()
}

// marked are the places of a guild in which somebody has written to the bot.
func (r *receiver) marked(guild string) (ids []string) {
	for _, m := range r.marks.All() {
		if m.Guild == guild {
			ids = append(ids, cmp.Or(m.Place, m.Channel))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// removed completes what an event says of a server that the bot was removed
// from: a session that goes on after a start has not described it.
func (r *receiver) removed(e gateway.Event, in *core.Inbound) {
	var g wire.Guild
	if e.Type != "GUILD_DELETE" || in.Standing != core.StandingRemoved || json.Unmarshal(e.Data, &g) != nil {
		return
	}
	in.Places = append(in.Places, r.marked(g.ID)...)
	slices.Sort(in.Places)
	in.Places = slices.Compact(in.Places)
}
