package main

import (
	"context"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/pairing"
)

// A bot is one configured bot. Its name is its platform's: each platform has
// one. A new platform is one more row.
type bot struct {
	platform string
	token    configs.Secret
	policy   string
	allowed  configs.List
	connect  func(a *app, token string) (connectors.Connector, error)
}

// bots are the platforms' bots, those with a token first asked for it.
func (a *app) bots() []bot {
	return []bot{
		{telegram.Platform, a.cfg.TelegramToken, a.cfg.TelegramDMPolicy, a.cfg.TelegramAllowedUsers, (*app).telegram},
		{discord.Platform, a.cfg.DiscordToken, a.cfg.DiscordDMPolicy, a.cfg.DiscordAllowedUsers, (*app).discord},
	}
}

func (a *app) telegram(token string) (connectors.Connector, error) {
	b, err := telegram.New(telegram.Options{
		Name: telegram.Platform, Token: token, APIURL: a.cfg.TelegramApiURL,
		Cursors: a.queue, Memory: a.db, Menu: menu(), Pace: bool(a.cfg.Pace),
		Clock: a.clock, Log: a.log, Metrics: telegram.NewMetrics(a.reg),
	})
	if err == nil {
		a.closing(b.Close)
	}
	return b, err
}

func (a *app) discord(token string) (connectors.Connector, error) {
	return discord.New(discord.Options{
		Name: discord.Platform, Token: token, APIURL: a.cfg.DiscordApiURL,
		Cursors: a.queue, Memory: a.db, Pace: bool(a.cfg.Pace),
		Clock: a.clock, Log: a.log, Metrics: discord.NewMetrics(a.reg),
	})
}

// connectors makes one for each bot that has a token.
func (a *app) connectors() (out []connectors.Connector, err error) {
	for _, b := range a.bots() {
		if !b.token.IsSet() {
			continue
		}
		c, err := b.connect(a, b.token.Reveal())
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// botNames are the configured bots.
func (a *app) botNames() (names []string) {
	for _, b := range a.bots() {
		if b.token.IsSet() {
			names = append(names, b.platform)
		}
	}
	return names
}

func (a *app) pairingBots() (out []pairing.BotName) {
	for _, name := range a.botNames() {
		out = append(out, pairing.BotName{Name: name, Platform: name})
	}
	return out
}

// platform is where a bot lives: its name's.
func (a *app) platform(name string) string {
	for _, b := range a.bots() {
		if b.platform == name {
			return b.platform
		}
	}
	return name
}

// policy is how a bot treats strangers; one that is not configured is silent.
func (a *app) policy(name string) pairing.Policy {
	dm, group := a.presets()
	for _, b := range a.bots() {
		if b.platform == name {
			return pairing.Policy{Platform: name, DM: b.policy, Allowed: b.allowed, DMTrust: dm, GroupTrust: group}
		}
	}
	return pairing.Policy{DM: pairing.PolicyDisabled}
}

// presets are the levels chosen beforehand when somebody is let in.
func (a *app) presets() (dm, group core.Trust) {
	dm, _ = core.ParseTrust(a.cfg.DMTrust) // checked by configs
	group, _ = core.ParseTrust(a.cfg.GroupTrust)
	return dm, group
}

// menu is the commands that anybody with access may use, for platforms with a menu.
func menu() []connectors.Command {
	var out []connectors.Command
	for _, c := range chatCommands() {
		if !c.owner {
			out = append(out, connectors.Command{Name: c.name, Description: c.about})
		}
	}
	return out
}

// testTelegram asks the platform who the configured token is.
func testTelegram(ctx context.Context, cfg *configs.Config) (string, error) {
	bot, err := telegram.New(telegram.Options{Name: telegram.Platform, Token: cfg.TelegramToken.Reveal(), APIURL: cfg.TelegramApiURL, Cursors: noCursors{}})
	if err != nil {
		return "", err
	}
	defer bot.Close()
	return bot.Test(ctx)
}

// testDiscord does the same for that platform's.
func testDiscord(ctx context.Context, cfg *configs.Config) (string, error) {
	bot, err := discord.New(discord.Options{Name: discord.Platform, Token: cfg.DiscordToken.Reveal(), APIURL: cfg.DiscordApiURL, Cursors: noCursors{}})
	if err != nil {
		return "", err
	}
	return bot.Test(ctx)
}

// noCursors is for a bot that does not poll.
type noCursors struct{}

func (noCursors) Cursor(context.Context, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}
