// Package interactions answers Discord's interactions: slash commands, buttons, menus,
// forms and completions (https://discord.com/developers/docs/interactions). The first
// response to each is due within three seconds.
package interactions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/markup"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// ackTime is the time limit of the first response to an interaction (Responding:
// "within 3 seconds").
const ackTime = 3 * time.Second

// maxNotice is the longest text shown to the user who pressed a button, in characters.
const maxNotice = 200

// ErrCallback is returned for a callback id that is not Discord's.
var ErrCallback = errors.New("the callback is not one of Discord's")

// Options configure a Responder. Bot, ID, Clock and Log are required.
type Options struct {
	Bot    string // configured name
	ID     string // the bot user's id
	Clock  core.Clock
	Log    *slog.Logger
	Memory connectors.Memory    // remembers the registered commands; may be nil
	Menu   []connectors.Command // nil: slash commands are not registered
	// Complete and Form are those of the connector's options; either may be nil.
	Complete func(ctx context.Context, who core.Peer, command, typed string) []string
	Form     func(ctx context.Context, in *core.Inbound) (connectors.Form, error)
}

// A Responder answers the interactions of one bot. It is safe for concurrent use.
type Responder struct {
	o     Options
	api   *rest.Client
	slots slots

	mu sync.Mutex
	// pending has an entry for each interaction from before its page is stored until
	// its first response has ended, so it is bounded by the interactions of a few
	// seconds.
	pending map[string]chan struct{}
}

// New returns a Responder that makes its requests with api.
func New(o Options, api *rest.Client) *Responder {
	return &Responder{o: o, api: api, pending: map[string]chan struct{}{}}
}

// Private reports whether the answers to a command are shown to its user alone.
func (r *Responder) Private(command string) bool {
	return slices.ContainsFunc(r.o.Menu, func(c connectors.Command) bool { return c.Name == command && c.Private })
}

// Read reads a command, a pressed button, a chosen menu entry or a submitted form into
// in, whose address is set. It leaves in unchanged for any other interaction.
func (r *Responder) Read(i *wire.Interaction, in *core.Inbound) {
	switch discordgo.InteractionType(i.Type) {
	case discordgo.InteractionApplicationCommand:
		if i.Token == "" {
			return
		}
		readCommand(i, in)
		if in.Group() && r.Private(in.Command) {
			in.Aside = in.Slot
		}
	case discordgo.InteractionMessageComponent, discordgo.InteractionModalSubmit:
		if i.Message != nil {
			readCallback(i, in)
		}
	}
}

func readCallback(i *wire.Interaction, in *core.Inbound) {
	data, form := pressed(i)
	in.Kind, in.Text, in.Addressed, in.MessageID = core.KindCallback, "", true, i.Message.ID
	in.Callback = &core.Callback{ID: callbackID(i), Data: data, Picked: picked(i)}
	if in.Group() && i.Message.Flags&int64(discordgo.MessageFlagsEphemeral) != 0 { // a private message continues privately
		in.Aside = slotPrefix + in.Callback.ID
	}
	if form && i.Type == int(discordgo.InteractionModalSubmit) {
		in.Callback.Fields = fields(i)
	}
}

func callbackID(i *wire.Interaction) string { return i.ID + "/" + i.Application + "/" + i.Token }

// parse splits a callback id into interaction, application and token.
func parse(id string) (interaction, application, token string, ok bool) {
	p := strings.SplitN(id, "/", 3)
	if len(p) != 3 || !wire.IsID(p[0]) || p[2] == "" || strings.ContainsAny(p[2], "/?# ") || p[1] != "" && !wire.IsID(p[1]) {
		return "", "", "", false
	}
	return p[0], p[1], p[2], true
}

// respond sends the first response to an interaction. Its error contains no token.
func (r *Responder) respond(ctx context.Context, id string, kind discordgo.InteractionResponseType, data any) error {
	interaction, _, token, ok := parse(id)
	if !ok {
		return ErrCallback
	}
	body := map[string]any{"type": int(kind)}
	if data != nil {
		body["data"] = data
	}
	if f := r.api.Call(ctx, http.MethodPost, "/interactions/"+interaction+"/"+token+"/callback", body, nil); f != nil {
		return errors.New(strings.ReplaceAll(f.Error(), token, "[interaction]"))
	}
	return nil
}

// Aside returns the work on an interaction that is answered immediately and never
// stored: a completion request, a button that opens a form, which read reads, or one in
// a chat between users. It returns nil for any other.
func (r *Responder) Aside(ctx context.Context, raw json.RawMessage, read func() (core.Inbound, error)) func() {
	var i struct {
		Type    discordgo.InteractionType `json:"type"`
		Context wire.Lenient[int]         `json:"context"`
		Data    struct {
			CustomID string `json:"custom_id"`
		} `json:"data"`
	}
	switch {
	case json.Unmarshal(raw, &i) != nil:
		return nil
	case i.Context.V == wire.PrivateChannel:
		return func() { r.refuse(ctx, raw) }
	case i.Type == discordgo.InteractionApplicationCommandAutocomplete:
		return func() { r.Complete(ctx, raw) }
	case r.o.Form != nil && i.Type == discordgo.InteractionMessageComponent && strings.HasPrefix(i.Data.CustomID, formPrefix):
		return func() { r.openForm(ctx, read) }
	}
	return nil
}

// refuse answers an interaction in a chat between users, which others than its user
// may read: only its user sees that the bot does not answer there.
func (r *Responder) refuse(ctx context.Context, raw json.RawMessage) {
	var i wire.Interaction
	if err := json.Unmarshal(raw, &i); err != nil {
		return
	}
	kind, data := discordgo.InteractionResponseChannelMessageWithSource, any(whisper(texts.Text("not_here")))
	if discordgo.InteractionType(i.Type) == discordgo.InteractionApplicationCommandAutocomplete {
		kind, data = discordgo.InteractionApplicationCommandAutocompleteResult, map[string]any{"choices": []any{}}
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	if err := r.respond(ctx, callbackID(&i), kind, data); err != nil {
		r.o.Log.WarnContext(ctx, "discord interaction between users not answered", "bot", r.o.Bot, "err", err)
	}
}

// Expect records the interactions in page, which is about to be stored, and returns
// their ids. Until Release, further responses to them wait.
func (r *Responder) Expect(page []core.Inbound) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range page {
		id := strings.TrimPrefix(in.Slot, slotPrefix)
		if in.Callback != nil {
			id = in.Callback.ID
		}
		if id == "" || r.pending[id] != nil {
			continue
		}
		r.pending[id] = make(chan struct{})
		ids = append(ids, id)
	}
	return ids
}

// Release ends the waiting for ids.
func (r *Responder) Release(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if c := r.pending[id]; c != nil {
			close(c)
			delete(r.pending, id)
		}
	}
}

// wait returns when no first response to id is pending, or when ctx ends.
func (r *Responder) wait(ctx context.Context, id string) {
	r.mu.Lock()
	c := r.pending[id]
	r.mu.Unlock()
	if c != nil {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
}

// Stored returns the first response to in, which is stored, if its id is among those
// that Expect returned; otherwise nil.
func (r *Responder) Stored(ctx context.Context, in *core.Inbound, expected []string) func() {
	if in.Slot != "" && slices.Contains(expected, strings.TrimPrefix(in.Slot, slotPrefix)) {
		return func() { r.think(ctx, in) }
	}
	if in.Callback != nil && slices.Contains(expected, in.Callback.ID) {
		return func() { r.deferral(ctx, in.Callback.ID) }
	}
	return nil
}

// deferral acknowledges a stored button press without a visible change; a text may
// follow by Acknowledge. A press that is too old, as after a resume, needs none.
func (r *Responder) deferral(ctx context.Context, id string) {
	defer r.Release([]string{id})
	if _, _, _, ok := parse(id); !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	if err := r.respond(ctx, id, discordgo.InteractionResponseDeferredMessageUpdate, nil); err != nil {
		r.o.Log.WarnContext(ctx, "discord button not answered", "bot", r.o.Bot, "err", err)
	}
}

// Acknowledge shows text to the user who pressed a button, and to no one else. An empty
// text needs no request, and neither does a press whose token has ended (15 minutes).
// It returns ErrCallback for an invalid id.
func (r *Responder) Acknowledge(ctx context.Context, callbackID, text string) error {
	_, application, token, ok := parse(callbackID)
	if !ok {
		return ErrCallback
	}
	if text == "" {
		return nil
	}
	r.wait(ctx, callbackID)
	if application == "" {
		application = r.o.ID
	}
	f := r.api.Call(ctx, "POST", "/webhooks/"+application+"/"+token, whisper(text), nil)
	if f == nil || f.Expired() {
		return nil
	}
	f.Text = strings.ReplaceAll(f.Text, token, "[interaction]")
	return f
}

// whisper returns a message that only the user who pressed a button sees.
func whisper(text string) wire.Body {
	if r := []rune(text); len(r) > maxNotice {
		text = string(r[:maxNotice-1]) + "…"
	}
	content, _ := markup.Fit(core.Part{Text: text}, "")
	return wire.Body{Content: content, AllowedMentions: wire.NoMentions, Flags: discordgo.MessageFlagsEphemeral | discordgo.MessageFlagsSuppressEmbeds}
}
