package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/markup"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// Bounds of a modal (Interaction Response, Modal; Component Reference, Label,
// Text Input).
const (
	maxTitle   = 45
	maxFields  = 5
	maxOver    = 45
	maxBeside  = 100
	maxHint    = 100
	maxWritten = 4000
)

const (
	labelComponent = 18 // discordgo has no name for it
	severalLines   = 2  // Text Input Styles, Paragraph
)

// A modal is what a form looks like to the platform.
type modal struct {
	CustomID   string  `json:"custom_id"`
	Title      string  `json:"title"`
	Components []label `json:"components"`
}

type label struct {
	Type        int    `json:"type"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Component   input  `json:"component"`
}

type input struct {
	Type        discordgo.ComponentType `json:"type"`
	CustomID    string                  `json:"custom_id"` // the field's number
	Style       int                     `json:"style"`
	Placeholder string                  `json:"placeholder,omitempty"`
	MaxLength   int                     `json:"max_length"`
	Required    bool                    `json:"required"`
}

func asModal(f connectors.Form, data string) modal {
	m := modal{CustomID: formPrefix + data, Title: cutRunes(f.Title, maxTitle)}
	for i, field := range f.Fields[:min(len(f.Fields), maxFields)] {
		m.Components = append(m.Components, label{labelComponent, cutRunes(field.Label, maxOver), cutRunes(field.About, maxBeside),
			input{discordgo.TextInputComponent, strconv.Itoa(i), severalLines, cutRunes(field.Hint, maxHint), maxWritten, true}})
	}
	return m
}

// opensForm reports whether an interaction is a pressed button that opens a form.
func (b *Bot) opensForm(data json.RawMessage) bool {
	var i struct {
		Type int `json:"type"`
		Data struct {
			CustomID string `json:"custom_id"`
		} `json:"data"`
	}
	return b.o.Form != nil && json.Unmarshal(data, &i) == nil && i.Type == int(discordgo.InteractionMessageComponent) &&
		strings.HasPrefix(i.Data.CustomID, formPrefix)
}

// openForm answers such a button. A form must be the first answer to a press,
// within three seconds, so that nothing is stored before it; it does nothing
// but open.
func (b *Bot) openForm(ctx context.Context, e gateway.Event) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	in, err := b.inbound(ctx, e)
	if err != nil || in.Callback == nil {
		b.o.Log.WarnContext(ctx, "discord form not opened", "bot", b.o.Name, "err", err)
		return
	}
	in.Bot = b.o.Name
	interaction, _, token, ok := press(in.Callback.ID)
	if !ok {
		return
	}
	answer := map[string]any{}
	form, err := b.o.Form(ctx, &in)
	switch {
	case err == nil:
		answer["type"], answer["data"] = int(discordgo.InteractionResponseModal), asModal(form, in.Callback.Data)
	case core.KindOf(err) == core.Other:
		b.o.Log.ErrorContext(ctx, "discord form not opened", "bot", b.o.Name, "err", err)
		answer["type"], answer["data"] = int(discordgo.InteractionResponseChannelMessageWithSource), whisper(texts.Text("press_again"))
	default:
		answer["type"], answer["data"] = int(discordgo.InteractionResponseChannelMessageWithSource), whisper(core.TextOf(err))
	}
	if f := b.call(ctx, http.MethodPost, "/interactions/"+interaction+"/"+token+"/callback", answer, nil); f != nil {
		b.o.Log.WarnContext(ctx, "discord form not opened", "bot", b.o.Name, "err", strings.ReplaceAll(f.Error(), token, "[interaction]"))
	}
}

// whisper is a message that only who pressed a button sees.
func whisper(text string) outgoing {
	if r := []rune(text); len(r) > maxNotice {
		text = string(r[:maxNotice-1]) + "…"
	}
	words, _ := markup.Fit(core.Part{Text: text}, "")
	return outgoing{Content: words, AllowedMentions: noMentions, Flags: discordgo.MessageFlagsEphemeral | discordgo.MessageFlagsSuppressEmbeds}
}

// A submitted is one component of a modal that was sent: a label with one in
// it, or the older row.
type submitted struct {
	Component  filledIn   `json:"component"`
	Components []filledIn `json:"components"`
}

type filledIn struct {
	CustomID string `json:"custom_id"`
	Value    string `json:"value"`
}

// fields is what was written, by the fields' numbers.
func (i *interaction) fields() []string {
	out := []string{}
	for _, c := range i.Data.Components.V {
		for _, w := range append(c.Components, c.Component) {
			n, err := strconv.Atoi(w.CustomID)
			if err != nil || n < 0 || n >= maxFields {
				continue
			}
			for len(out) <= n {
				out = append(out, "")
			}
			out[n] = strings.TrimSpace(w.Value)
		}
	}
	return out
}
