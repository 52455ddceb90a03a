package interactions

import (
	"context"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// Limits of a modal (Interaction Response, Modal; Component Reference, Label, Text
// Input).
const (
	maxTitle   = 45
	maxFields  = 5
	maxOver    = 45
	maxBeside  = 100
	maxHint    = 100
	maxWritten = 4000
)

const (
	labelComponent = 18 // not named by discordgo
	severalLines   = 2  // Text Input Styles, Paragraph
)

// A modal is a form as the platform takes it.
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

// openForm answers a button that opens a form. A form must be the first response to a
// press, so nothing is stored before it.
func (r *Responder) openForm(ctx context.Context, read func() (core.Inbound, error)) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	in, err := read()
	if err != nil || in.Callback == nil {
		r.o.Log.WarnContext(ctx, "discord form not opened", "bot", r.o.Bot, "err", err)
		return
	}
	in.Bot = r.o.Bot
	if _, _, _, ok := parse(in.Callback.ID); !ok {
		return
	}
	kind := discordgo.InteractionResponseChannelMessageWithSource
	var data any
	form, err := r.o.Form(ctx, &in)
	switch {
	case err == nil:
		kind, data = discordgo.InteractionResponseModal, asModal(form, in.Callback.Data)
	case core.KindOf(err) == core.Other:
		r.o.Log.ErrorContext(ctx, "discord form not opened", "bot", r.o.Bot, "err", err)
		data = whisper(texts.Text("press_again"))
	default:
		data = whisper(core.TextOf(err))
	}
	if err := r.respond(ctx, in.Callback.ID, kind, data); err != nil {
		r.o.Log.WarnContext(ctx, "discord form not opened", "bot", r.o.Bot, "err", err)
	}
}

// fields returns the submitted values by field number.
func fields(i *wire.Interaction) []string {
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
