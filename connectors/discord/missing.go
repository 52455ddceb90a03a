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

// missing stores that the bot was removed from servers while there was no session,
// which the platform does not report later. Such a server has channels in which users
// wrote to the bot, READY does not list it, and one of its channels is closed to the
// bot. READY does list a server with an outage.
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

// closed reports whether a channel is deleted or not visible to the bot; false if the
// platform does not respond.
func (b *Bot) closed(ctx context.Context, channel string) bool {
	f := b.api.Call(ctx, "GET", "/channels/"+channel, nil, nil)
	return f.Hidden()
}

// marked returns the places of a guild in which users have written to the bot.
func (r *receiver) marked(guild string) (ids []string) {
	for _, m := range r.marks.All() {
		if m.Guild == guild {
			ids = append(ids, cmp.Or(m.Place, m.Channel))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// removed adds the known places to an event about a server that the bot was removed
// from: a resumed session has not described that server.
func (r *receiver) removed(e gateway.Event, in *core.Inbound) {
	var g wire.Guild
	if e.Type != "GUILD_DELETE" || in.Standing != core.StandingRemoved || json.Unmarshal(e.Data, &g) != nil {
		return
	}
	in.Places = append(in.Places, r.marked(g.ID)...)
	slices.Sort(in.Places)
	in.Places = slices.Compact(in.Places)
}
