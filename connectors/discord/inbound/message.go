package inbound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// errNoRow means that an event needs no row.
var errNoRow = errors.New("nothing to store")

// Decode converts one event of a session. ok is false for events that need no row: the bot's own
// messages, and events that only describe channels or servers. An event that cannot be
// decoded is marked Malformed and becomes a dead letter, so that the stream continues, also
// if the decoder panics on it.
// An error means that a channel could not be looked up: retry the event. It wraps a
// *rest.Failure.
func (d *Decoder) Decode(ctx context.Context, e gateway.Event, session string) (in core.Inbound, ok bool, err error) {
	malformed := e.Malformed
	if malformed == "" {
		in, err = d.Read(ctx, e)
		switch {
		case errors.Is(err, errNoRow):
			return in, false, nil
		case errors.As(err, new(errLookup)):
			return in, false, err
		case err != nil:
			malformed = "the event " + core.CutRunes(e.Type, 40) + " can't be decoded: " + core.CutRunes(err.Error(), 200)
		}
	}
	if malformed != "" {
		in = core.Inbound{Kind: core.KindService, Malformed: malformed, From: core.Peer{Platform: wire.Platform}}
	}
	if in.UpdateID == "" {
		in.UpdateID = eventID(e, session)
	}
	if in.At.IsZero() {
		in.At = d.o.Clock.Now()
	}
	in.Bot = d.o.Bot
	return in, true, nil
}

// eventID returns the id of an event that has none of its own: its position in the
// session, or without one a hash of its bytes.
func eventID(e gateway.Event, session string) string {
	if e.Seq > 0 && session != "" {
		return "event:" + session + ":" + strconv.FormatInt(e.Seq, 10)
	}
	sum := sha256.Sum256(e.Data)
	return "event:sha256-" + hex.EncodeToString(sum[:8])
}

// Read is Decode without its handling of errors, for events that are answered at
// once and never stored. A panic is an error.
func (d *Decoder) Read(ctx context.Context, e gateway.Event) (in core.Inbound, err error) {
	defer connectors.Recover(d.o.Log, d.o.Bot, "decode", &err)
	switch e.Type {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m wire.Message
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return core.Inbound{}, err
		}
		if e.Type == "MESSAGE_UPDATE" {
			return d.fromEdit(ctx, &m)
		}
		return d.fromMessage(ctx, &m)
	case "INTERACTION_CREATE":
		var i wire.Interaction
		if err := json.Unmarshal(e.Data, &i); err != nil {
			return core.Inbound{}, err
		}
		return d.fromInteraction(ctx, &i)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		var r wire.Reaction
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return core.Inbound{}, err
		}
		return d.fromReaction(ctx, &r, e.Type == "MESSAGE_REACTION_ADD")
	case "":
		return core.Inbound{}, errors.New("it has no type")
	}
	in, ok := d.standing(e)
	d.places.learn(e, d.o.ID)
	if !ok {
		return core.Inbound{}, errNoRow
	}
	return in, nil
}

func (d *Decoder) fromMessage(ctx context.Context, m *wire.Message) (core.Inbound, error) {
	if err := m.Check(); err != nil {
		return core.Inbound{}, err
	}
	if m.Author.ID == d.o.ID {
		return core.Inbound{}, errNoRow
	}
	at, err := d.address(ctx, m.Channel, m.Guild)
	if err != nil {
		return core.Inbound{}, err
	}
	in := core.Inbound{
		UpdateID: "message:" + m.ID, Kind: core.KindMessage, Address: at.Address, PlaceName: at.name, Topic: at.topic,
		MessageID: m.ID, From: m.Sender(), At: m.Timestamp.Time(d.o.Clock.Now()),
	}
	if m.Type != wire.TypeDefault && m.Type != wire.TypeReply {
		in.Kind, in.Text = core.KindService, "message type "+strconv.Itoa(m.Type)
		return in, nil
	}
	err = d.content(ctx, m, &in)
	in.Quote = d.root(ctx, m, &in)
	return in, err
}

// content reads a message's text, files and quote, and whether it is addressed to the
// bot.
func (d *Decoder) content(ctx context.Context, m *wire.Message, in *core.Inbound) error {
	if r := m.Reference.V; r != nil && r.Type == 0 {
		in.ReplyTo = r.Message
	}
	mentioned, err := d.mentioned(ctx, m)
	if err != nil {
		return err
	}
	in.Addressed = !in.Group() || mentioned || m.RepliesTo(d.o.ID)
	text := d.readable(m.Text(), m)
	if name, rest, ok := command(text); ok && m.Content != "" {
		in.Kind, in.Command, text, in.Addressed = core.KindCommand, name, rest, true
	}
	in.Text, in.Files, in.Quote = strings.TrimSpace(text+m.Shown()), m.Files(), m.Quoted(d.o.ID)
	kind := m.Kind()
	switch {
	case kind != "" && (in.Text != "" || len(in.Files) > 0 || in.Kind == core.KindCommand):
		in.Text = strings.TrimSpace(in.Text + "\n\n[sent with a " + kind + ", which cannot be read here]")
	case kind != "" && in.Addressed:
		in.Unsupported = kind
	case in.Addressed && in.Text == "" && !d.o.Hears && len(in.Files) > 0 && in.Files[0].Voice:
		in.Unsupported = "voice message"
	case text == "" && mentioned && in.Kind == core.KindMessage:
		in.Text = "@" + d.name()
	}
	if in.Kind == core.KindMessage {
		in.Files = append(in.Files, m.Referred(d.o.ID, !in.Group())...)
	}
	return nil
}

// fromEdit converts real edits only: the platform also sends an update when it has
// resolved a link, and then the edit time does not change (or is null).
func (d *Decoder) fromEdit(ctx context.Context, m *wire.Message) (core.Inbound, error) {
	if m.Edited == "" {
		return core.Inbound{}, errNoRow
	}
	if m.Author == nil && wire.IsID(m.ID) {
		return core.Inbound{}, errNoRow // a partial update without text
	}
	edited := m.Edited
	in, err := d.fromMessage(ctx, m)
	if err != nil || in.Kind == core.KindService {
		return in, cmp.Or(err, errNoRow)
	}
	in.UpdateID, in.Kind, in.Edit = "edit:"+m.ID+":"+string(edited), core.KindEdit, string(edited)
	in.At = edited.Time(d.o.Clock.Now())
	return in, nil
}

// fromInteraction converts commands, pressed buttons, chosen menu entries and
// submitted forms. Those in a chat between users need no row: such a chat has no guild
// either, and would pass for a direct message with the bot.
func (d *Decoder) fromInteraction(ctx context.Context, i *wire.Interaction) (core.Inbound, error) {
	if i.Context.V == wire.PrivateChannel {
		return core.Inbound{}, errNoRow
	}
	who := i.Who()
	if !wire.IsID(i.ID) || who == nil || who.ID == "" {
		return core.Inbound{}, errors.New("an interaction without id or user")
	}
	in := core.Inbound{UpdateID: "interaction:" + i.ID, Kind: core.KindService, From: who.Peer(), Text: "interaction type " + strconv.Itoa(i.Type)}
	if wire.IsID(i.Channel) {
		at, err := d.address(ctx, i.Channel, i.Guild)
		if err != nil {
			return in, err
		}
		in.Address, in.PlaceName, in.Topic = at.Address, at.name, at.topic
		text := in.Text
		in.Text = ""
		d.o.Interactions.Read(i, &in)
		if in.Kind == core.KindService {
			in.Text = text
		}
	}
	return in, nil
}

// fromReaction has the emoji that was set as text, or "" when it was removed.
func (d *Decoder) fromReaction(ctx context.Context, r *wire.Reaction, set bool) (core.Inbound, error) {
	if !wire.IsID(r.Channel) || r.User == "" {
		return core.Inbound{}, errors.New("a reaction without channel or person")
	}
	if r.User == d.o.ID {
		return core.Inbound{}, errNoRow
	}
	at, err := d.address(ctx, r.Channel, r.Guild)
	if err != nil {
		return core.Inbound{}, err
	}
	in := core.Inbound{Kind: core.KindReaction, Address: at.Address, PlaceName: at.name, MessageID: r.Message,
		From: core.Peer{Platform: wire.Platform, ID: r.User}}
	if r.Member != nil && r.Member.User != nil && r.Member.User.ID == r.User {
		in.From = r.Member.User.Peer()
	}
	if set {
		in.Text = core.CutRunes(r.Emoji.Name, 100)
	}
	return in, nil
}

// mentioned reports whether the platform has parsed a mention of the bot or of its
// own role in the message. Text that looks like a mention is none, and @everyone
// does not count.
func (d *Decoder) mentioned(ctx context.Context, m *wire.Message) (bool, error) {
	if slices.ContainsFunc(m.Mentions.V, func(u wire.User) bool { return u.ID == d.o.ID }) {
		return true, nil
	}
	if len(m.MentionRoles.V) == 0 {
		return false, nil
	}
	ours, err := d.ownRole(ctx, m.Guild, m.Channel)
	return ours != "" && slices.Contains(m.MentionRoles.V, ours), err
}

// errLookup means that a request for a channel or guild failed.
type errLookup struct{ f *rest.Failure }

func (e errLookup) Error() string { return fmt.Sprintf("look up a channel: %v", e.f) }
func (e errLookup) Unwrap() error { return e.f }
