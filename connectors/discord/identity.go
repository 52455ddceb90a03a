package discord

import (
	"context"

	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// An Identity is what the platform knows about a bot.
type Identity struct {
	Username string
	// Content: the portal's toggle Message Content Intent is on (Application
	// Flags: GATEWAY_MESSAGE_CONTENT and …_LIMITED), so that the bot reads what
	// does not mention it.
	Content bool
	// Invite is the URL by which a server's administrator adds the bot, with slash
	// commands and the permissions View Channels, Send Messages (also in threads),
	// Read Message History, Attach Files and Add Reactions (OAuth2, Bot
	// Authorization Flow).
	Invite string
}

// permissions is 1<<6 | 1<<10 | 1<<11 | 1<<15 | 1<<16 | 1<<38 (Permissions, Bitwise
// Permission Flags).
const permissions = "274878008384"

// Identity asks the platform who the token is; errors are those of Test.
func (b *Bot) Identity(ctx context.Context) (Identity, error) {
	name, err := b.Test(ctx)
	if err != nil {
		return Identity{}, err
	}
	var app struct {
		ID    string `json:"id"`
		Flags int64  `json:"flags"`
	}
	if f := b.api.Call(ctx, "GET", "/applications/@me", nil, &app); f != nil || !wire.IsID(app.ID) {
		return Identity{}, core.Errorf(core.Busy, "Discord does not name the application of the bot %s", b.o.Name)
	}
	return Identity{name, app.Flags&(1<<18|1<<19) != 0, DefaultAPIURL + "/oauth2/authorize?client_id=" + app.ID + "&scope=bot+applications.commands&permissions=" + permissions}, nil
}
