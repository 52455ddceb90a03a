package discord

import (
	"context"
	"net/http"
	"strings"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors/discord/markup"
	"gatehouse/core"
)

// sendAside sends a further part of an answer to who alone may see it, or to
// nobody: never to the chat.
func (b *Bot) sendAside(ctx context.Context, out core.Outgoing, body outgoing) core.Delivery {
	if out.File != nil {
		return core.Delivery{Outcome: core.Refused, Reason: "a file cannot be shown to one person alone"}
	}
	edit := isID(out.Replaces)
	if edit {
		id, f := b.whisper(ctx, out.Aside, out.Replaces, body)
		if f == nil {
			b.o.Metrics.asked(b.o.Name, 0)
			return core.Delivery{Outcome: core.Sent, MessageID: id}
		}
		if !f.ended() {
			return b.delivery(out.Chat, f, true, true)
		}
	}
	if out.Repeat {
		if marked, ok := markup.Fit(out.Part, repeatMark()); ok {
			body.Content = marked
		}
	}
	id, f := b.whisper(ctx, out.Aside, "", body)
	switch {
	case f == nil:
		b.o.Metrics.asked(b.o.Name, 0)
		return core.Delivery{Outcome: core.Sent, MessageID: id}
	case f.ended():
		return core.Delivery{Outcome: core.Refused, Reason: "one person alone may see it, and the platform shows them no more of it", Late: !edit}
	}
	return b.delivery(out.Chat, f, false, false)
}

// whisper sends a further part of an answer that one person alone sees, or
// rewords message, which is one.
func (b *Bot) whisper(ctx context.Context, slot, message string, body outgoing) (string, *failure) {
	b.acks.wait(ctx, strings.TrimPrefix(slot, slotPrefix))
	body.Reference, body.Nonce, body.EnforceNonce = nil, "", false
	body.Flags = body.Flags&discordgo.MessageFlagsSuppressEmbeds | discordgo.MessageFlagsEphemeral
	var m struct {
		ID string `json:"id"`
	}
	method := http.MethodPost
	if message != "" {
		method = http.MethodPatch
		body.Flags &= discordgo.MessageFlagsSuppressEmbeds
	}
	f := b.hook(ctx, method, slot, message, body, &m)
	return m.ID, f
}
