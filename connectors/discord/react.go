package discord

import (
	"context"
	"net/url"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

var _ connectors.Reactor = (*Bot)(nil)

// reactions are the emoji that the gateway uses; removing one requires its name.
var reactions = []string{"👀", "✍"}

// React sets an emoji under a message (Create Reaction), replacing the bot's other one.
// An empty emoji removes it (Delete Own Reaction).
func (b *Bot) React(ctx context.Context, to core.Address, messageID, emoji string) error {
	if !wire.IsID(to.Chat) || !wire.IsID(messageID) {
		return core.Errorf(core.Invalid, "there is no such message")
	}
	at := "/channels/" + to.Chat + "/messages/" + messageID + "/reactions/"
	if emoji != "" {
		if f := b.api.Call(ctx, "PUT", at+url.PathEscape(emoji)+"/@me", nil, nil); f != nil {
			return f
		}
	}
	for _, e := range reactions {
		if e == emoji {
			continue
		}
		if f := b.api.Call(ctx, "DELETE", at+url.PathEscape(e)+"/@me", nil, nil); f != nil && f.Status != 404 {
			return f
		}
	}
	return nil
}
