package inbound

import (
	"context"
	"encoding/json"
	"sync"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// maxPlaces limits the channels and the guilds in the cache. Others are asked for when
// a message comes from them.
const maxPlaces = 10_000

// maxRoots limits the threads of which the starter message is cached.
const maxRoots = 500

// places caches channels and guilds: the channel that a thread belongs to, names, and
// the role that is the bot's own.
type places struct {
	mu       sync.Mutex
	channels *connectors.LRU[string, wire.Channel]
	guilds   *connectors.LRU[string, string]    // names
	roles    *connectors.LRU[string, string]    // the bot's own role by guild; "" for none
	own      *connectors.LRU[string, bool]      // the same by role
	roots    *connectors.LRU[string, beginning] // starter messages by thread
}

func newPlaces() *places {
	return &places{channels: connectors.NewLRU[string, wire.Channel](maxPlaces), guilds: connectors.NewLRU[string, string](maxPlaces), roles: connectors.NewLRU[string, string](maxPlaces), own: connectors.NewLRU[string, bool](maxPlaces), roots: connectors.NewLRU[string, beginning](maxRoots)}
}

// learn updates the cache from an event. It ignores what it cannot decode.
func (p *places) learn(e gateway.Event, bot string) {
	switch e.Type {
	case "GUILD_CREATE", "GUILD_UPDATE":
		var g wire.Guild
		if json.Unmarshal(e.Data, &g) == nil && g.ID != "" {
			p.learnGuild(g, bot)
		}
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var c wire.Channel
		if json.Unmarshal(e.Data, &c) == nil {
			p.put(c)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		var c wire.Channel
		if json.Unmarshal(e.Data, &c) == nil {
			p.mu.Lock()
			p.channels.Remove(c.ID)
			p.mu.Unlock()
		}
	case "THREAD_LIST_SYNC":
		var s struct {
			Guild   string                       `json:"guild_id"`
			Threads wire.Lenient[[]wire.Channel] `json:"threads"`
		}
		if json.Unmarshal(e.Data, &s) == nil {
			for _, c := range s.Threads.V {
				c.Guild = s.Guild
				p.put(c)
			}
		}
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE":
		var r struct {
			Guild string `json:"guild_id"`
		}
		if json.Unmarshal(e.Data, &r) == nil {
			p.mu.Lock()
			p.roles.Remove(r.Guild) // asked for when it is needed
			p.mu.Unlock()
		}
	}
}

func (p *places) learnGuild(g wire.Guild, bot string) {
	if g.Name != "" {
		p.mu.Lock()
		p.guilds.Put(g.ID, g.Name)
		p.mu.Unlock()
	}
	if g.Roles.V != nil {
		p.learnRoles(g.ID, g.Roles.V, bot)
	}
	for _, list := range [][]wire.Channel{g.Channels.V, g.Threads.V} {
		for _, c := range list {
			c.Guild = g.ID
			p.put(c)
		}
	}
}

// learnRoles stores and returns the role that the platform made for the bot (Role
// Tags, bot_id), or "".
func (p *places) learnRoles(guild string, roles []wire.Role, bot string) (own string) {
	for _, r := range roles {
		if r.Tags.Bot == bot {
			own = r.ID
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roles.Put(guild, own)
	if own != "" {
		p.own.Put(own, true)
	}
	return own
}

func (p *places) put(c wire.Channel) {
	if !wire.IsID(c.ID) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.channels.Put(c.ID, c)
}

func (p *places) channel(id string) (wire.Channel, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.channels.Get(id)
}

func (p *places) nameOf(channel string) string {
	c, _ := p.channel(channel)
	return core.CleanName(c.Name)
}

func (p *places) guildName(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, _ := p.guilds.Get(id)
	return name
}

func (p *places) isOwnRole(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, _ := p.own.Get(id)
	return own
}

// A spot is an address with the names of its place and thread.
type spot struct {
	core.Address
	name, topic string
}

// address returns the address of a channel's messages. Without a guild it is a direct
// message, because the platform names the guild of every other.
func (d *Decoder) address(ctx context.Context, id, guild string) (spot, error) {
	if guild == "" {
		return spot{Address: core.Address{Chat: id}}, nil
	}
	c, err := d.channel(ctx, id)
	if err != nil {
		return spot{}, err
	}
	at := spot{Address: core.Address{Chat: id, Place: id}, name: placeName(d.places.guildName(guild), c.Name)}
	if c.IsThread() {
		at.Thread, at.Place = id, c.Parent
		parent, _ := d.places.channel(c.Parent)
		at.name, at.topic = placeName(d.places.guildName(guild), parent.Name), topicOf(c, parent)
	}
	return at, nil
}

// channel returns a channel from the cache or the platform. One that is deleted or not
// visible becomes a place of its own, which is not enabled.
func (d *Decoder) channel(ctx context.Context, id string) (wire.Channel, error) {
	if c, ok := d.places.channel(id); ok {
		return c, nil
	}
	var c wire.Channel
	switch f := d.o.API.Call(ctx, "GET", "/channels/"+id, nil, &c); {
	case f == nil:
	case f.Hidden():
	default:
		return c, errLookup{f}
	}
	c.ID = id
	d.places.put(c)
	return c, nil
}

// ownRole returns the bot's own role in a guild, or "".
func (d *Decoder) ownRole(ctx context.Context, guild, channel string) (string, error) {
	if guild == "" { // read back by REST, where messages don't name their guild
		c, err := d.channel(ctx, channel)
		if err != nil || c.Guild == "" {
			return "", err
		}
		guild = c.Guild
	}
	d.places.mu.Lock()
	own, ok := d.places.roles.Get(guild)
	d.places.mu.Unlock()
	if ok {
		return own, nil
	}
	var roles []wire.Role
	switch f := d.o.API.Call(ctx, "GET", "/guilds/"+guild+"/roles", nil, &roles); {
	case f == nil:
	case f.Hidden():
	default:
		return "", errLookup{f}
	}
	return d.places.learnRoles(guild, roles, d.o.ID), nil
}
