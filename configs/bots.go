package configs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

// A Bot is one bot as it is configured: by its platform's settings, under its
// platform's name, or as an entry of BOTS_FILE.
type Bot struct {
	Name         string
	Platform     string // "telegram" or "discord"
	Token        values.Secret
	TokenFile    string      // that Token was read from; "" when it is in a setting or in BOTS_FILE
	APIURL       string      // scheme://host:port
	DMPolicy     string      // pairing, allowlist, open or disabled
	AllowedUsers values.List // numeric user ids
	DMTrust      string      // sandboxed or vault, as GroupTrust
	GroupTrust   string
	Where        string // the setting, or file:line, to name it in messages
	InFile       bool   // an entry of BOTS_FILE
	Added        bool   // in the panel
	Off          bool   // stopped in the panel: it does not start on its own
	Fault        string // why there is no Token, and what to do; "" when there is one
}

// Account returns the platform's account of the token; "" without a token. An old and
// a new token of one account have the same.
func (b Bot) Account() string {
	p, ok := platformNamed(b.Platform)
	if !ok || !b.Token.IsSet() {
		return ""
	}
	return b.Platform + ":" + p.account(b.Token.Reveal())
}

// MaxBots bounds the bots that one gateway runs, of the settings, of BOTS_FILE and added in
// the panel.
const MaxBots = 64

// A platform is what has to be known of one to check its bots.
type platform struct {
	name    string
	setting string // of its token, without prefix
	token   func(string) error
	account func(token string) string // that the token belongs to
	bot     func(c *Config) Bot       // of the settings
}

func platforms() []platform {
	return []platform{
		{"telegram", "TELEGRAM_TOKEN", check.TelegramToken, upTo(":"), func(c *Config) Bot {
			return Bot{Token: c.TelegramToken, APIURL: c.TelegramApiURL, DMPolicy: c.TelegramDMPolicy, AllowedUsers: c.TelegramAllowedUsers}
		}},
		{"discord", "DISCORD_TOKEN", check.DiscordToken, upTo("."), func(c *Config) Bot {
			return Bot{Token: c.DiscordToken, APIURL: c.DiscordApiURL, DMPolicy: c.DiscordDMPolicy, AllowedUsers: c.DiscordAllowedUsers}
		}},
	}
}

// upTo returns what precedes mark: both platforms' tokens begin with the account.
func upTo(mark string) func(string) string {
	return func(token string) string { account, _, _ := strings.Cut(token, mark); return account }
}

func platformNamed(name string) (platform, bool) {
	all := platforms()
	i := slices.IndexFunc(all, func(p platform) bool { return p.name == name })
	if i < 0 {
		return platform{}, false
	}
	return all[i], true
}

// platformNames returns "telegram", "discord".
func platformNames() (names []string) {
	for _, p := range platforms() {
		names = append(names, p.name)
	}
	return names
}

// BotsPath returns the file with more bots; "" when none is wanted. named means that
// a setting named it, so that it has to exist.
func (c *Config) BotsPath() (path string, named bool) {
	switch c.BotsFile {
	case "off":
		return "", false
	case "":
		return filepath.Join(c.VaultPath, ".parachute", "bots.yaml"), false
	}
	return c.BotsFile, true
}

// ReadBots reads every bot again, tokens in files too: first those of the
// settings, then those of BOTS_FILE, then those that were added in the panel. It may be
// called at any time, and changes
// nothing. A bot whose token is missing or malformed is in the list with a
// Fault. An error is Problems, of BOTS_FILE alone, by line and without any
// value; the list then has the bots of that file from keep, with fresh tokens.
func (c *Config) ReadBots(keep []Bot) ([]Bot, error) {
	list := c.settingBots()
	entries, problems := c.readBotsFile()
	if len(problems) > 0 {
		for _, b := range keep {
			if b.InFile {
				b.refresh()
				list = append(list, b)
			}
		}
	} else {
		list = append(list, entries...)
	}
	list = append(list, c.addedBots(list)...)
	c.change(list)
	sole(list)
	if len(problems) > 0 {
		return list, problems
	}
	return list, nil
}

// settingBots returns the bots that have a token, or the file of one, in the settings.
func (c *Config) settingBots() (list []Bot) {
	for _, p := range platforms() {
		b := p.bot(c)
		b.Name, b.Platform, b.Where = p.name, p.name, Prefix+"_"+p.setting
		b.DMTrust, b.GroupTrust = c.DMTrust, c.GroupTrust
		if !b.Token.IsSet() {
			continue
		}
		if from := c.files[p.setting]; from.path != "" && from.value == b.Token { // it was not replaced
			b.TokenFile, b.Where = from.path, b.Where+"_FILE"
			b.refresh()
		}
		list = append(list, b)
	}
	return list
}

// refresh reads the token's file again.
func (b *Bot) refresh() {
	p, ok := platformNamed(b.Platform)
	if b.TokenFile == "" || !ok {
		return
	}
	b.Token, b.Fault = values.Secret{}, ""
	s, err := values.ReadSecret(b.TokenFile)
	if err == nil {
		err = p.token(s.Reveal())
		if err != nil {
			err = fmt.Errorf("the token in %s %w", b.TokenFile, err)
		}
	}
	if err != nil {
		b.Fault = err.Error() + "; put the bot's token into that file; it is read again automatically"
		return
	}
	b.Token = s
}

// sole removes the token of every bot whose account an earlier bot has: two readers
// of one account would receive each other's messages.
func sole(list []Bot) {
	first := map[string]string{} // account → the bot's name; one per bot
	for i := range list {
		b := &list[i]
		key := b.Account()
		if key == "" {
			continue
		}
		if other, taken := first[key]; taken {
			b.Token, b.Fault = values.Secret{}, "its token belongs to the same account as the token of the bot "+other+": each bot needs an account of its own"
			continue
		}
		first[key] = b.Name
	}
}

// loadBots returns what Load and Validate find wrong with the bots of BOTS_FILE.
func (c *Config) loadBots() Problems {
	bots, err := c.ReadBots(nil)
	var problems Problems
	if p, ok := err.(Problems); ok {
		problems = p
	}
	c.more = nil
	for _, b := range bots {
		switch {
		case !b.InFile: // the settings' own checks have checked it
		case b.Fault != "":
			problems = append(problems, Problem{Name: b.Where, Fault: b.Fault})
		default:
			c.more = append(c.more, b.Token)
		}
	}
	return problems
}
