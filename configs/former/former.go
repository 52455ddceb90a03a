// Package former reads the bots file of the original system, which has one bot
// per platform, and writes what it states as ours.
package former

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"gatehouse/configs/values"
)

// A File is what a bots file of the original system states.
type File struct {
	Path string
	Text []byte
	Bots []Bot    // by platform
	Left []string // what of the file has no equivalent: fields, and platforms without a token; at most maxLeft
}

// A Bot is one bot of the original system, which has the name of its platform.
type Bot struct {
	Platform   string
	Enabled    bool
	Token      values.Secret
	Allowed    []string // user ids as they are written; at most maxAllowed
	DMTrust    string   // sandboxed or vault, as GroupTrust
	GroupTrust string
	usable     bool
}

const (
	maxLeft    = 50
	maxAllowed = 1000
)

// Usable returns the bots that can run.
func (f *File) Usable() (list []Bot) {
	for _, b := range f.Bots {
		if b.usable {
			list = append(list, b)
		}
	}
	return list
}

// Read reads text, the content of path; nil is any file that is not the original
// system's. A bot with a token is usable if usable reports it. No value of the file is
// in Left.
func Read(path string, text []byte, platforms []string, usable func(Bot) bool) *File {
	f := &File{Path: path, Text: text}
	var top map[string]any
	ok := false
	if yaml.Unmarshal(text, &top) != nil || top == nil {
		return nil
	}
	if _, ours := top["bots"]; ours {
		return nil
	}
	for name, v := range top {
		_, isMap := v.(map[string]any)
		ok = ok || isMap && (slices.Contains(platforms, name) || name == "matrix")
	}
	if !ok {
		return nil
	}
	for _, name := range sorted(top) {
		fields, isMap := top[name].(map[string]any)
		if !isMap || !slices.Contains(platforms, name) {
			f.leave(name)
			continue
		}
		f.bot(name, fields, usable)
	}
	return f
}

func sorted(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_.]{1,60}$`) })

func (f *File) leave(name string) {
	if !plainWord().MatchString(name) {
		name = "a field with an unusual name" // it may be a secret in the wrong place
	}
	if len(f.Left) < maxLeft && !slices.Contains(f.Left, name) {
		f.Left = append(f.Left, name)
	}
}

func (f *File) bot(platform string, fields map[string]any, usable func(Bot) bool) {
	b := Bot{Platform: platform, DMTrust: "vault", GroupTrust: "sandboxed"}
	for _, name := range sorted(fields) {
		v := fields[name]
		switch name {
		case "enabled":
			b.Enabled, _ = v.(bool)
		case "bot_token":
			if token, ok := v.(string); ok {
				b.Token = values.NewSecret(strings.TrimSpace(token))
			}
		case "allowed_users":
			b.Allowed = f.users(platform, v)
		case "dm_trust_level":
			b.DMTrust = level(v)
		case "group_trust_level":
			b.GroupTrust = level(v)
		case "default_trust_level": // the original system does not use it
		default:
			f.leave(platform + "." + name)
		}
	}
	if !b.Token.IsSet() && b.Enabled {
		f.leave(platform + ".bot_token")
	}
	b.usable = b.Token.IsSet() && usable(b)
	f.Bots = append(f.Bots, b)
}

func (f *File) users(platform string, v any) (ids []string) {
	list, ok := v.([]any)
	if !ok && v != nil {
		f.leave(platform + ".allowed_users")
	}
	for _, id := range list {
		if len(ids) == maxAllowed {
			f.leave(platform + ".allowed_users")
			break
		}
		ids = append(ids, fmt.Sprint(id))
	}
	return ids
}

// level returns the level that the original system's is in chat, where no user has
// full trust. It knows the names of its later versions too.
func level(v any) string {
	switch v {
	case "full", "vault", "trusted", "direct":
		return "vault"
	}
	return "sandboxed"
}

// Format writes the bots as a bots.yaml. from is the name under which the
// original system's is kept.
func Format(bots []Bot, from string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made of the original system's file, which is kept as %s.\n", from)
	b.WriteString("# A token is safer in a file of its own, outside of the vault: token_file instead of token.\nbots:\n")
	for _, bot := range bots {
		fmt.Fprintf(&b, "  - name: %s\n    platform: %[1]s\n    token: %q\n    dm_policy: pairing\n    dm_trust: %s\n    group_trust: %s\n",
			bot.Platform, bot.Token.Reveal(), bot.DMTrust, bot.GroupTrust)
	}
	return []byte(b.String())
}
