package discord

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/rest"
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
		if f := b.reaction(ctx, "PUT", at+url.PathEscape(emoji)+"/@me"); f != nil {
			return leftOut(f)
		}
	}
	for _, e := range reactions {
		if e == emoji {
			continue
		}
		if f := b.reaction(ctx, "DELETE", at+url.PathEscape(e)+"/@me"); f != nil && f.Status != 404 {
			return leftOut(f)
		}
	}
	return nil
}

// leftOut returns connectors.ErrNotNow for a rate limit, else f.
func leftOut(f *rest.Failure) error {
	if f.Status == http.StatusTooManyRequests {
		return connectors.ErrNotNow
	}
	return f
}

// reaction makes a request about a reaction, again after each 429 until ctx ends:
// reactions have a rate limit of their own, one in 250 ms per channel, so the second
// of two requests in a row is usually refused.
func (b *Bot) reaction(ctx context.Context, method, path string) *rest.Failure {
	for {
		f := b.api.Call(ctx, method, path, nil, nil)
		if f == nil || f.Status != http.StatusTooManyRequests || !core.Sleep(ctx, b.o.Clock, cmp.Or(f.After, connectors.UnnamedWait)) {
			return f
		}
	}
}
