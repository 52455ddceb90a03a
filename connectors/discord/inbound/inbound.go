// Package inbound decodes the events of Discord's gateway into core.Inbound, and
// knows what the addresses in them need: channels, guilds and the bot's own role.
//
// Ids of updates are made of immutable facts: "message:<id>" (the same from
// the gateway and from a backfill), "edit:<id>:<edit time>",
// "interaction:<id>", and for what has no id of its own, such as a reaction,
// "event:<session>:<sequence>", which RESUME repeats unchanged.
//
// A chat is a channel's id. A thread or forum post is a channel of its own:
// its id is chat and thread, and its place is the channel (or forum) it belongs
// to. The place of another guild channel is the channel itself, not the guild,
// so that the owner enables channels one by one. Direct messages have no place.
package inbound

import (
	"log/slog"
	"sync/atomic"

	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// Interactions reads commands, pressed buttons and forms; see
// interactions.Responder.Read.
type Interactions interface {
	Read(i *wire.Interaction, in *core.Inbound)
}

// Options configure a Decoder. All but Hears and Log are required.
type Options struct {
	Bot          string       // configured name
	ID           string       // the bot user's id
	Hears        bool         // voice messages are transcribed; without it one is marked Unsupported
	Log          *slog.Logger // discarded
	Clock        core.Clock
	API          *rest.Client // asked for channels, roles and starter messages that no event has described
	Interactions Interactions
}

// A Decoder decodes the events of one bot. It may be used by several goroutines
// at once.
type Decoder struct {
	o        Options
	places   *places
	username atomic.Pointer[string]
}

// New returns a Decoder that knows no channel yet.
func New(o Options) *Decoder {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Decoder{o: o, places: newPlaces()}
}

// SetUsername sets the bot's name on the platform.
func (d *Decoder) SetUsername(name string) { d.username.Store(&name) }

// Username returns the bot's name on the platform, or "" before SetUsername.
func (d *Decoder) Username() string {
	if name := d.username.Load(); name != nil {
		return *name
	}
	return ""
}

// name returns the bot's name on the platform, or the configured one.
func (d *Decoder) name() string {
	if name := d.Username(); name != "" {
		return name
	}
	return d.o.Bot
}

// GuildOf returns the guild of a known channel; "" for a
// direct message and for an unknown channel.
func (d *Decoder) GuildOf(channel string) string {
	c, _ := d.places.channel(channel)
	return c.Guild
}
