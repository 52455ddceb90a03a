package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"gatehouse/configs/values"
)

// An AddedBot is a bot that was added in the panel: no setting and no file configures
// it. Its token is in a file of its own.
type AddedBot struct {
	Platform string `json:"platform"`
}

// TokensDir returns the directory with the tokens of bots that were added in the panel.
func (c *Config) TokensDir() string { return filepath.Join(c.VaultPath, ".parachute", "tokens") }

// NewBot returns a bot as the panel adds it, with a policy as configured. An error
// begins with the field's name and does not contain the token.
func (c *Config) NewBot(name, platform, token string) (Bot, error) {
	p, known := platformNamed(platform)
	switch {
	case !known:
		return Bot{}, fmt.Errorf("platform: choose one of %v", platformNames())
	case checkName(name, platform) != nil:
		return Bot{}, fmt.Errorf("name: %w", checkName(name, platform))
	case token == "":
		return Bot{}, errors.New("token: give the bot's token")
	}
	if err := p.token(token); err != nil {
		return Bot{}, fmt.Errorf("token: it %w", err)
	}
	b := c.addedBot(name, p)
	b.Token = values.NewSecret(token)
	return b, nil
}

// StoreToken writes the token of a bot that NewBot returned into its file, which only
// this user may read.
func (b Bot) StoreToken() error { return values.WriteSecret(b.TokenFile, b.Token) }

// TokenOf returns the file with the token of a bot that was added in the panel.
func (c *Config) TokenOf(bot string) string { return filepath.Join(c.TokensDir(), bot) }

// addedBot returns the bot without its token.
func (c *Config) addedBot(name string, p platform) Bot {
	return Bot{Name: name, Platform: p.name, TokenFile: c.TokenOf(name), APIURL: p.bot(c).APIURL, DMPolicy: "pairing",
		DMTrust: c.DMTrust, GroupTrust: c.GroupTrust, Where: "the panel", Added: true}
}

// addedBots returns the bots that were added in the panel. A bot of list, which is
// configured, has the name before them; with them there are no more than can run.
func (c *Config) addedBots(list []Bot) (added []Bot) {
	for _, name := range slices.Sorted(maps.Keys(c.changes)) {
		a := c.changes[name].Added
		if a == nil || slices.ContainsFunc(list, func(b Bot) bool { return b.Name == name }) || len(list)+len(added) >= MaxBots {
			continue
		}
		p, _ := platformNamed(a.Platform) // it was checked
		b := c.addedBot(name, p)
		if c.changes[name].TokenFile == "" { // else that one is read
			b.refresh()
		}
		added = append(added, b)
	}
	return added
}

// check reports why a bot of this name cannot have been added.
func (a *AddedBot) check(name string) error {
	_, known := platformNamed(a.Platform)
	if !known {
		return fmt.Errorf("bot %s: no such platform", name)
	}
	return checkName(name, a.Platform)
}

// checkName reports why a bot of this platform cannot have this name.
func checkName(name, platform string) error {
	_, isPlatform := platformNamed(name)
	switch {
	case !botName().MatchString(name):
		return errors.New("it is 1 to 32 small letters, digits, - and _, and begins with a letter")
	case slices.Contains(reserved, name), isPlatform && name != cmp.Or(platform, name):
		return fmt.Errorf("%s is the name of something else: choose another", name)
	}
	return nil
}
