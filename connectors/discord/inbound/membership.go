package inbound

import (
	"encoding/json"
	"slices"
	"time"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// newlyIn is the age up to which joining a server is reported: the platform describes
// all servers again at every start of a session.
const newlyIn = 24 * time.Hour

// standing converts an event about the bot's membership: added to a server, removed
// from it, or a channel deleted. It runs before learn. It reports false for any other
// event.
func (d *Decoder) standing(e gateway.Event) (core.Inbound, bool) {
	in := core.Inbound{Kind: core.KindService, From: core.Peer{Platform: wire.Platform}, At: d.o.Clock.Now()}
	switch e.Type {
	case "GUILD_CREATE":
		var g wire.Guild
		if json.Unmarshal(e.Data, &g) != nil || !wire.IsID(g.ID) {
			return in, false
		}
		in.At = g.Joined.Time(time.Time{})
		if age := d.o.Clock.Now().Sub(in.At); age >= newlyIn || age < -newlyIn {
			return in, false
		}
		in.UpdateID, in.Text = "guild:"+g.ID+":"+string(g.Joined), "joined a server"
		in.Standing, in.PlaceName = core.StandingAdded, core.CleanName(g.Name)
		for _, c := range g.Channels.V {
			in.Places = append(in.Places, c.ID)
		}
	case "GUILD_DELETE":
		var g wire.Guild
		if json.Unmarshal(e.Data, &g) != nil || !wire.IsID(g.ID) || g.Unavailable { // an outage (Guild Delete)
			return in, false
		}
		in.Text, in.Standing, in.PlaceName = "left a server", core.StandingRemoved, core.CleanName(d.places.guildName(g.ID))
		in.Places = d.places.in(g.ID)
	case "CHANNEL_DELETE":
		var c wire.Channel
		if json.Unmarshal(e.Data, &c) != nil || !wire.IsID(c.ID) || c.Guild == "" {
			return in, false
		}
		in.Text, in.Standing, in.PlaceName = "channel deleted", core.StandingRemoved, placeName(d.places.guildName(c.Guild), c.Name)
		in.Chat, in.Place = c.ID, c.ID
	default:
		return in, false
	}
	return in, true
}

// in returns the cached channels of a guild, without threads.
func (p *places) in(guild string) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, c := range p.channels.All() {
		if c.Guild == guild && !c.IsThread() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
