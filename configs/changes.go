package configs

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/configs/check"
	"gatehouse/configs/values"
)

// SourcePanel is of a value that was set in the panel.
const SourcePanel = "panel"

// Changes are what was set in the panel, over environment and files. They are
// kept as JSON.
type Changes struct {
	Settings map[string]string    `json:"settings,omitempty"` // by name without prefix, as the environment would hold them; of Changeable
	Bots     map[string]BotChange `json:"bots,omitempty"`     // by the bot's name; bounded by the bots there may be
}

// A BotChange is what was set of one bot.
type BotChange struct {
	Added     *AddedBot  `json:"added,omitempty"`      // nil: the bot is configured
	Policy    *BotPolicy `json:"policy,omitempty"`     // nil: as configured
	TokenFile string     `json:"token_file,omitempty"` // that its token is read from; "": as configured
	Off       bool       `json:"off,omitempty"`        // it stays stopped until someone starts it
	// Texts replace the catalogue's texts for users, by name; they were checked when
	// they were set.
	Texts map[string]string `json:"texts,omitempty"`
}

// Empty reports whether nothing was set.
func (c BotChange) Empty() bool {
	return c.Added == nil && c.Policy == nil && c.TokenFile == "" && !c.Off && len(c.Texts) == 0
}

// A BotPolicy is how one bot treats users without access.
type BotPolicy struct {
	DMPolicy     string      `json:"dm_policy"`
	AllowedUsers values.List `json:"allowed_users,omitempty"`
	DMTrust      string      `json:"dm_trust"`
	GroupTrust   string      `json:"group_trust"`
}

// Policies, and the levels that can be preset, as settings write them.
func Policies() []string { return []string{"pairing", "allowlist", "open", "disabled"} }

// presetLevels returns the levels that can be preset.
func presetLevels() []string { return []string{"sandboxed", "vault"} }

// check names the field that is wrong.
func (p *BotPolicy) check() error {
	switch {
	case !slices.Contains(Policies(), p.DMPolicy):
		return fmt.Errorf("policy: %q is not one of %s", p.DMPolicy, strings.Join(Policies(), ", "))
	case !slices.Contains(presetLevels(), p.DMTrust):
		return fmt.Errorf("level of direct messages: %q is not one of %s", p.DMTrust, strings.Join(presetLevels(), ", "))
	case !slices.Contains(presetLevels(), p.GroupTrust):
		return fmt.Errorf("level of groups: %q is not one of %s", p.GroupTrust, strings.Join(presetLevels(), ", "))
	case len(p.AllowedUsers) > maxAllowed:
		return fmt.Errorf("allowed users: at most %d", maxAllowed)
	}
	if err := each(p.AllowedUsers, check.User); err != nil {
		return fmt.Errorf("allowed users: %w", err)
	}
	return nil
}

// When a change of a setting takes effect.
const (
	AtOnce       = "at once"
	NextMessage  = "next message"
	AfterRestart = "restart"
)

// changeable are the settings that can be changed while the gateway runs, with when a
// change takes effect.
var changeable = []struct{ name, effect string }{
	{"DM_TRUST", AtOnce}, {"GROUP_TRUST", AtOnce}, {"GUEST_READ", NextMessage}, {"DEFAULT_AGENT", NextMessage}, {"BUSY_MODE", NextMessage}, {"RATE_LIMIT", AtOnce},
	{"ACTIVITY", NextMessage},
	{"MODEL", NextMessage}, {"MODEL_FALLBACKS", NextMessage}, {"GUEST_MODEL", NextMessage}, {"TITLE_MODEL", NextMessage},
	{"BUDGET_USER_DAY", AtOnce}, {"BUDGET_BOT_DAY", AtOnce}, {"BUDGET_DAY", AtOnce},
}

// Changeable returns the settings that can be changed while the gateway runs.
func Changeable() (names []string) {
	for _, s := range changeable {
		names = append(names, s.name)
	}
	return names
}

// Effect returns when another value of the setting with this name (without the prefix)
// takes effect: AtOnce, NextMessage or AfterRestart.
func (c *Config) Effect(name string) string {
	for _, s := range changeable {
		if s.name == name {
			return s.effect
		}
	}
	isToken := slices.ContainsFunc(platforms(), func(p platform) bool { return p.setting == name })
	if name == "LOG_LEVEL" || isToken && c.Source(name) == SourceFile { // the panel changes the level; tokens' files are read again
		return AtOnce
	}
	return AfterRestart
}

// With returns a copy of c with changes made. The first that can't be made is the
// error, which begins with the field's name; no secret is in it.
func (c *Config) With(ch Changes) (*Config, error) {
	next := *c
	next.source = maps.Clone(c.source)
	if next.source == nil {
		next.source = map[string]string{}
	}
	next.changes = ch.Bots
	for _, name := range slices.Sorted(maps.Keys(ch.Settings)) {
		if !slices.Contains(Changeable(), name) {
			return nil, fmt.Errorf("%s: it cannot be changed here", name)
		}
		if err := next.set(name, ch.Settings[name]); err != nil {
			return nil, err
		}
	}
	for name, b := range ch.Bots {
		if b.Added != nil {
			if err := b.Added.check(name); err != nil {
				return nil, err
			}
		}
		if b.Policy != nil {
			if err := b.Policy.check(); err != nil {
				return nil, err
			}
			if b.Added == nil {
				next.showPolicy(name, b.Policy)
			}
		}
		if b.TokenFile != "" {
			if err := next.checkTokenFile(b.TokenFile); err != nil {
				return nil, fmt.Errorf("token file: %w", err)
			}
		}
	}
	return &next, nil
}

// Holding returns a copy of c with those of the changes made that can be, these
// changes, and why the others can't: a key that a model needs may be gone since.
func (c *Config) Holding(ch Changes) (next *Config, kept Changes, left []error) {
	kept = Changes{Settings: map[string]string{}, Bots: map[string]BotChange{}}
	try := func(back func()) {
		if _, err := c.With(kept); err != nil {
			left = append(left, err)
			back()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ch.Settings)) {
		kept.Settings[name] = ch.Settings[name]
		try(func() { delete(kept.Settings, name) })
	}
	for _, name := range slices.Sorted(maps.Keys(ch.Bots)) {
		kept.Bots[name] = ch.Bots[name]
		try(func() { delete(kept.Bots, name) })
	}
	next, err := c.With(kept)
	if err != nil { // it was tried
		return c, Changes{}, append(left, err)
	}
	return next, kept, left
}

// Without returns ch without those changes that are the same in was and not in kept,
// which Holding returned for was.
func (ch Changes) Without(was, kept Changes) Changes {
	out := Changes{Settings: maps.Clone(ch.Settings), Bots: maps.Clone(ch.Bots)}
	maps.DeleteFunc(out.Settings, func(name, value string) bool {
		old, stored := was.Settings[name]
		_, holds := kept.Settings[name]
		return stored && !holds && old == value
	})
	maps.DeleteFunc(out.Bots, func(name string, b BotChange) bool {
		old, stored := was.Bots[name]
		_, holds := kept.Bots[name]
		return stored && !holds && reflect.DeepEqual(old, b)
	})
	return out
}

// set gives one setting a value as the environment would.
func (c *Config) set(name, value string) error {
	for _, f := range fields() {
		if f.short() != name {
			continue
		}
		to := reflect.New(f.Type)
		switch v := to.Interface().(type) {
		case interface{ Decode(string) error }:
			if err := v.Decode(value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		case *string:
			*v = value
		case *time.Duration, *int:
			return fmt.Errorf("%s: it cannot be changed here", name)
		}
		f.in(c).Set(to.Elem())
		if err := f.bounds(c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if check := c.checks()[name]; check != nil {
			if err := check(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		c.source[name] = SourcePanel
		return nil
	}
	return fmt.Errorf("%s: there is no such setting", name)
}

// showPolicy has the settings' own bots listed with the policy that holds.
func (c *Config) showPolicy(bot string, p *BotPolicy) {
	switch bot {
	case "telegram":
		c.TelegramDMPolicy, c.TelegramAllowedUsers = p.DMPolicy, p.AllowedUsers
	case "discord":
		c.DiscordDMPolicy, c.DiscordAllowedUsers = p.DMPolicy, p.AllowedUsers
	default:
		return
	}
	for _, name := range []string{"_DM_POLICY", "_ALLOWED_USERS"} {
		c.source[strings.ToUpper(bot)+name] = SourcePanel
	}
}

// checkTokenFile refuses files that agents could read.
func (c *Config) checkTokenFile(path string) error {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return errors.New("give the whole path, such as /run/secrets/telegram_token")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // a missing file is reported when it is read
	}
	vault := c.VaultPath
	if v, err := filepath.EvalSymlinks(vault); err == nil {
		vault = v
	}
	for _, p := range []string{filepath.Clean(path), real} {
		if rel, err := filepath.Rel(vault, p); err == nil && filepath.IsLocal(rel) {
			return errors.New("it lies in the vault, where agents can read it: move it out of the vault")
		}
	}
	return nil
}

// change has list as it was set in the panel.
func (c *Config) change(list []Bot) {
	for i := range list {
		b := &list[i]
		ch, ok := c.changes[b.Name]
		if !ok || ch.Added != nil && !b.Added { // a configured bot took the name
			continue
		}
		if p := ch.Policy; p != nil {
			b.DMPolicy, b.AllowedUsers, b.DMTrust, b.GroupTrust = p.DMPolicy, p.AllowedUsers, p.DMTrust, p.GroupTrust
		}
		if ch.TokenFile != "" {
			b.TokenFile, b.Where = ch.TokenFile, "the token file set in the panel"
			b.refresh()
		}
		b.Off = ch.Off
	}
}

// BotChanges returns what was set of bots in the panel, by name. No one changes them.
func (c *Config) BotChanges() map[string]BotChange { return c.changes }
