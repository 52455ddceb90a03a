package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// errNone means that an event needs no row.
var errNone = errors.New("nothing to store")

// decode converts one event. ok is false for events that need no row: the bot's own
// messages, and events that only describe channels or servers. An event that cannot be
// decoded is marked Malformed and becomes a dead letter, so that the stream continues.
// The error means that a channel could not be looked up: retry the event.
func (b *Bot) decode(ctx context.Context, e gateway.Event, session string) (in core.Inbound, ok bool, err error) {
	malformed := e.Malformed
	if malformed == "" {
		in, err = b.inbound(ctx, e)
		switch {
		case errors.Is(err, errNone):
			return in, false, nil
		case errors.As(err, new(errLookup)):
			return in, false, err
		case err != nil:
			malformed = "the event " + core.CutRunes(e.Type, 40) + " can't be decoded: " + core.CutRunes(err.Error(), 200)
		}
	}
	if malformed != "" {
		in = core.Inbound{Kind: core.KindService, Malformed: malformed, From: core.Peer{Platform: Platform}}
	}
	if in.UpdateID == "" {
		in.UpdateID = eventID(e, session)
	}
	if in.At.IsZero() {
		in.At = b.o.Clock.Now()
	}
	in.Bot = b.o.Name
	return in, true, nil
}

// eventID names an event that has no id of its own by its place in the
// stream, and one without a place by its bytes.
func eventID(e gateway.Event, session string) string {
	if e.Seq > 0 && session != "" {
		return "event:" + session + ":" + strconv.FormatInt(e.Seq, 10)
	}
	sum := sha256.Sum256(e.Data)
	return "event:sha256-" + hex.EncodeToString(sum[:8])
}

// inbound translates an event.
func (b *Bot) inbound(ctx context.Context, e gateway.Event) (core.Inbound, error) {
	switch e.Type {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m wire.Message
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return core.Inbound{}, err
		}
		if e.Type == "MESSAGE_UPDATE" {
			return b.fromEdit(ctx, &m)
		}
		return b.fromMessage(ctx, &m)
	case "INTERACTION_CREATE":
		var i wire.Interaction
		if err := json.Unmarshal(e.Data, &i); err != nil {
			return core.Inbound{}, err
		}
		return b.fromInteraction(ctx, &i)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		var r wire.Reaction
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return core.Inbound{}, err
		}
		return b.fromReaction(ctx, &r, e.Type == "MESSAGE_REACTION_ADD")
	case "":
		return core.Inbound{}, errors.New("it has no type")
	}
	in, ok := b.standing(e)
	b.places.learn(e, b.id)
	if !ok {
		return core.Inbound{}, errNone
	}
	return in, nil
}

func (b *Bot) fromMessage(ctx context.Context, m *wire.Message) (core.Inbound, error) {
	if err := m.Check(); err != nil {
		return core.Inbound{}, err
	}
	if m.Author.ID == b.id {
		return core.Inbound{}, errNone
	}
	at, err := b.address(ctx, m.Channel, m.Guild)
	if err != nil {
		return core.Inbound{}, err
	}
	in := core.Inbound{
		UpdateID: "message:" + m.ID, Kind: core.KindMessage, Address: at.Address, PlaceName: at.name, Topic: at.topic,
		MessageID: m.ID, From: m.Sender(), At: m.Timestamp.Time(b.o.Clock.Now()),
	}
	if m.Type != wire.TypeDefault && m.Type != wire.TypeReply {
		in.Kind, in.Text = core.KindService, "message type "+strconv.Itoa(m.Type)
		return in, nil
	}
	err = b.words(ctx, m, &in)
	in.Quote = b.root(ctx, m, &in)
	return in, err
}

// words reads the text of a message, and whether it is addressed to the bot.
func (b *Bot) words(ctx context.Context, m *wire.Message, in *core.Inbound) error {
	if r := m.Reference.V; r != nil && r.Type == 0 {
		in.ReplyTo = r.Message
	}
	mentioned, err := b.mentioned(ctx, m)
	if err != nil {
		return err
	}
	in.Addressed = !in.Group() || mentioned || m.RepliesTo(b.id)
	text := m.Content
	if len(m.Snapshots.V) > 0 && text == "" {
		text = m.Snapshots.V[0].Message.Content
	}
	text = b.readable(text, m)
	if name, rest, ok := command(text); ok && m.Content != "" {
		in.Kind, in.Command, text, in.Addressed = core.KindCommand, name, rest, true
	}
	in.Text, in.Files, in.Quote = strings.TrimSpace(text+m.Shown()), m.Files(), m.Quoted(b.id)
	kind := m.Kind()
	switch {
	case kind != "" && (in.Text != "" || len(in.Files) > 0 || in.Kind == core.KindCommand):
		in.Text = strings.TrimSpace(in.Text + "\n\n[sent with a " + kind + ", which cannot be read here]")
	case kind != "" && in.Addressed:
		in.Unsupported = kind
	case in.Addressed && in.Text == "" && !b.o.Hears && len(in.Files) > 0 && in.Files[0].Voice:
		in.Unsupported = "voice message"
	case text == "" && mentioned && in.Kind == core.KindMessage:
		in.Text = "@" + b.name()
	}
	return nil
}

func (b *Bot) name() string {
	if name := b.username.Load(); name != nil && *name != "" {
		return *name
	}
	return b.o.Name
}

// fromEdit converts real edits only: the platform also sends an update when it has
// resolved a link, and then the edit time does not change (or is null).
func (b *Bot) fromEdit(ctx context.Context, m *wire.Message) (core.Inbound, error) {
	if m.Edited == "" {
		return core.Inbound{}, errNone
	}
	if m.Author == nil && wire.IsID(m.ID) {
		return core.Inbound{}, errNone // a partial update without text
	}
	edited := m.Edited
	in, err := b.fromMessage(ctx, m)
	if err != nil || in.Kind == core.KindService {
		return in, cmpErr(err)
	}
	in.UpdateID, in.Kind, in.Edit = "edit:"+m.ID+":"+string(edited), core.KindEdit, string(edited)
	in.At = edited.Time(b.o.Clock.Now())
	return in, nil
}

// cmpErr makes nothing of an edited service message.
func cmpErr(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// fromInteraction takes commands, pressed buttons, chosen menu entries and
// submitted forms.
func (b *Bot) fromInteraction(ctx context.Context, i *wire.Interaction) (core.Inbound, error) {
	who := i.Who()
	if !wire.IsID(i.ID) || who == nil || who.ID == "" {
		return core.Inbound{}, errors.New("an interaction without id or user")
	}
	in := core.Inbound{UpdateID: "interaction:" + i.ID, Kind: core.KindService, From: who.Peer(), Text: "interaction type " + strconv.Itoa(i.Type)}
	if wire.IsID(i.Channel) {
		at, err := b.address(ctx, i.Channel, i.Guild)
		if err != nil {
			return in, err
		}
		in.Address, in.PlaceName, in.Topic = at.Address, at.name, at.topic
		text := in.Text
		in.Text = ""
		b.answers.Read(i, &in)
		if in.Kind == core.KindService {
			in.Text = text
		}
	}
	return in, nil
}

// fromReaction keeps the emoji that was set; "" for one taken back.
func (b *Bot) fromReaction(ctx context.Context, r *wire.Reaction, set bool) (core.Inbound, error) {
	if !wire.IsID(r.Channel) || r.User == "" {
		return core.Inbound{}, errors.New("a reaction without channel or person")
	}
	if r.User == b.id {
		return core.Inbound{}, errNone
	}
	at, err := b.address(ctx, r.Channel, r.Guild)
	if err != nil {
		return core.Inbound{}, err
	}
	in := core.Inbound{Kind: core.KindReaction, Address: at.Address, PlaceName: at.name, MessageID: r.Message,
		From: core.Peer{Platform: Platform, ID: r.User}}
	if r.Member != nil && r.Member.User != nil && r.Member.User.ID == r.User {
		in.From = r.Member.User.Peer()
	}
	if set {
		in.Text = core.CutRunes(r.Emoji.Name, 100)
	}
	return in, nil
}

// mentioned reports whether the message names the bot or the role that is its
// own, as the platform has parsed it. Text that merely looks so is none, and
// @everyone is not meant for us.
func (b *Bot) mentioned(ctx context.Context, m *wire.Message) (bool, error) {
	if slices.ContainsFunc(m.Mentions.V, func(u wire.User) bool { return u.ID == b.id }) {
		return true, nil
	}
	if len(m.MentionRoles.V) == 0 {
		return false, nil
	}
	ours, err := b.ownRole(ctx, m.Guild, m.Channel)
	return ours != "" && slices.Contains(m.MentionRoles.V, ours), err
}

// errLookup means that a request for a channel or guild failed.
type errLookup struct{ f *rest.Failure }

func (e errLookup) Error() string { return fmt.Sprintf("look up a channel: %v", e.f) }
func (e errLookup) Unwrap() error { return e.f }

// missed decodes a message that was read back, which names neither its guild nor its
// position in the stream.
func (r *receiver) missed(ctx context.Context, raw json.RawMessage, at mark) (core.Inbound, bool, error) {
	var m wire.Message
	e := gateway.Event{Type: "MESSAGE_CREATE", Data: raw}
	if json.Unmarshal(raw, &m) == nil {
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(raw, &fields) == nil {
			fields["channel_id"], fields["guild_id"] = json.RawMessage(strconv.Quote(at.Channel)), json.RawMessage(strconv.Quote(at.Guild))
			if whole, err := json.Marshal(fields); err == nil {
				e.Data = whole
			}
		}
	}
	return r.decode(ctx, e)
}
