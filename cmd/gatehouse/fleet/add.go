package fleet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
)

// A NewBot is a bot to be added while the gateway runs.
type NewBot struct {
	Name, Platform, Token string
	Policy                configs.BotPolicy
}

// An Identity is what a platform states about a token.
type Identity struct {
	Username string
	Hints    []string // sentences: what is left to do on the platform
}

// Addable returns the platforms that a bot can be added on.
func Addable() []string { return []string{telegram.Platform, discord.Platform} }

// Refused returns the text for an operator who has just typed a token that the platform
// refuses; "" for other errors.
func Refused(platform string, err error) string {
	switch {
	case core.KindOf(err) != core.Denied:
		return ""
	case platform == telegram.Platform:
		return telegram.TokenRefused
	}
	return discord.TokenRefused
}

// Identify asks the platform who a bot's token is.
func Identify(ctx context.Context, b configs.Bot) (id Identity, err error) {
	c, err := newProbe(b)
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	switch c := c.(type) {
	case *telegram.Bot:
		me, err := c.Identity(ctx)
		if id.Username = "@" + me.Username; !me.ReadsGroups {
			id.Hints = append(id.Hints, "In groups it receives mentions, commands and replies to it; to let it see all messages: @BotFather, /setprivacy, Disable.")
		}
		return id, err
	case *discord.Bot:
		me, err := c.Identity(ctx)
		id.Username, id.Hints = me.Username, []string{"Invite it to a server: " + me.Invite}
		if !me.Content {
			id.Hints = append(id.Hints, "To let it read more than direct messages and mentions, switch on Message Content Intent in the developer portal.")
		}
		return id, err
	}
	id.Username, err = c.Test(ctx)
	return id, err
}

// Add adds a bot that no configuration names, if the platform accepts its token, and
// starts it. It stays after a restart. No error contains the token.
func (f *Fleet) Add(ctx context.Context, n NewBot, by core.Actor) (Identity, error) {
	f.adding.Lock()
	defer f.adding.Unlock()
	b, err := f.Settings.Now().NewBot(n.Name, n.Platform, bare(n.Token))
	if err != nil {
		return Identity{}, core.Errorf(core.Invalid, "%s", err.Error())
	}
	if _, taken := f.Bots.Find(n.Name); taken {
		return Identity{}, core.Errorf(core.Invalid, "name: there is a bot %s already", n.Name)
	}
	if len(f.Bots.All()) >= configs.MaxBots {
		return Identity{}, core.Errorf(core.Invalid, "there are %d bots already, more are not possible", configs.MaxBots)
	}
	edit := func(ch *configs.Changes) {
		ch.Bots[n.Name] = configs.BotChange{Added: &configs.AddedBot{Platform: n.Platform}, Policy: &n.Policy}
	}
	if _, err := f.Settings.Try(ctx, edit); err != nil { // before the platform is asked
		return Identity{}, err
	}
	id, err := f.accepted(ctx, b)
	if err != nil {
		return Identity{}, err
	}
	if err := b.StoreToken(); err != nil {
		return Identity{}, err
	}
	err = f.Settings.Change(ctx, by, live.Change{Action: "bot.add", Subject: n.Name, Detail: map[string]any{"platform": n.Platform, "account": id.Username}, Edit: edit})
	if err != nil {
		return Identity{}, errors.Join(err, os.Remove(b.TokenFile))
	}
	f.changed(ctx)
	return id, nil
}

// SetToken gives a bot that was added another token, if the platform accepts it.
func (f *Fleet) SetToken(ctx context.Context, bot, token string, by core.Actor) (Identity, error) {
	f.adding.Lock()
	defer f.adding.Unlock()
	old, err := f.added(bot)
	if err != nil {
		return Identity{}, err
	}
	b, err := f.Settings.Now().NewBot(old.Name, old.Platform, bare(token))
	if err != nil {
		return Identity{}, core.Errorf(core.Invalid, "%s", err.Error())
	}
	id, err := f.accepted(ctx, b)
	if err != nil {
		return Identity{}, err
	}
	before, stored := b, false
	before.Token = old.Token
	err = f.Change(ctx, bot, by, map[string]any{"token": true, "account": id.Username}, func(c *configs.BotChange) { c.TokenFile = "" },
		func(*configs.Config) error { stored = true; return b.StoreToken() })
	if err != nil && stored && old.TokenFile == b.TokenFile && old.Token.IsSet() {
		err = errors.Join(err, before.StoreToken())
	}
	return id, err
}

// Remove stops a bot that was added, forgets its settings and deletes its token.
func (f *Fleet) Remove(ctx context.Context, bot string, by core.Actor) error {
	f.adding.Lock()
	defer f.adding.Unlock()
	b, err := f.added(bot)
	if err != nil {
		return err
	}
	err = f.Settings.Change(ctx, by, live.Change{Action: "bot.remove", Subject: bot, Detail: map[string]any{"platform": b.Platform}, Edit: func(ch *configs.Changes) { delete(ch.Bots, bot) }})
	if err != nil {
		return err
	}
	f.changed(ctx)
	if err := os.Remove(f.Settings.Now().TokenOf(bot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// added returns a bot that was added in the panel.
func (f *Fleet) added(bot string) (configs.Bot, error) {
	b, known := f.Bots.Find(bot)
	switch {
	case !known:
		return b, noBot(bot)
	case !b.Added:
		return b, core.Errorf(core.Invalid, "bot %s is configured by %s: change it there", bot, b.Where)
	}
	return b, nil
}

// accepted asks the platform who a typed token is, unless another bot has its account.
func (f *Fleet) accepted(ctx context.Context, b configs.Bot) (Identity, error) {
	all := f.Bots.All()
	if i := slices.IndexFunc(all, func(o configs.Bot) bool { return o.Name != b.Name && o.Account() == b.Account() }); i >= 0 {
		return Identity{}, core.Errorf(core.Invalid, "token: the bot %s has this account already: each bot needs an account of its own", all[i].Name)
	}
	id, err := Identify(ctx, b)
	switch text := Refused(b.Platform, err); {
	case err == nil:
		return id, nil
	case text != "":
		return id, core.Errorf(core.Invalid, "token: %s", text)
	case core.KindOf(err) == core.Invalid: // its form
		return id, core.Errorf(core.Invalid, "token: %s", core.TextOf(err))
	case ctx.Err() != nil:
		return id, core.Errorf(core.Busy, "%s did not answer in time: check this machine's network, then try again", b.APIURL)
	}
	return id, core.Errorf(core.Busy, "%s; check this machine's network, then try again", strings.TrimSuffix(core.TextOf(err), "."))
}

// bare returns a token without the word that some documents write before it.
func bare(token string) string { return strings.TrimPrefix(strings.TrimSpace(token), "Bot ") }
