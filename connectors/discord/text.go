package discord

import (
	"regexp"
	"strings"

	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// code matches what the platform writes into text for users, channels, roles and emoji
// (Reference, Message Formatting).
var code = regexp.MustCompile(`<(@!?|@&|#|a?:[A-Za-z0-9_]{2,32}:)([0-9]{1,20})>`)

// readable returns text with names instead of ids, without a leading mention of the
// bot.
func (b *Bot) readable(text string, m *wire.Message) string {
	text = strings.TrimSpace(text)
	for {
		at := code.FindStringSubmatchIndex(text)
		if at == nil || at[0] != 0 || !b.names(text[at[2]:at[3]], text[at[4]:at[5]], m) {
			break
		}
		text = strings.TrimLeft(text[at[1]:], " \t\n,:")
	}
	return code.ReplaceAllStringFunc(text, func(s string) string {
		p := code.FindStringSubmatch(s)
		switch kind, id := p[1], p[2]; kind {
		case "@", "@!":
			return "@" + b.nameOf(id, m, s)
		case "#":
			if name := b.places.nameOf(id); name != "" {
				return "#" + name
			}
		case "@&":
		default:
			return strings.TrimPrefix(kind, "a")
		}
		return s
	})
}

// names reports whether a code is a mention of the bot that the platform has
// parsed as one.
func (b *Bot) names(kind, id string, m *wire.Message) bool {
	switch kind {
	case "@", "@!":
		return id == b.id
	case "@&":
		return b.places.isOwnRole(id)
	}
	return false
}

// nameOf returns the name of a mentioned user, or other without markup if it is
// unknown.
func (b *Bot) nameOf(id string, m *wire.Message, other string) string {
	if id == b.id {
		return b.name()
	}
	for _, u := range m.Mentions.V {
		if u.ID == id {
			if name := u.Peer().Name; name != "" {
				return name
			}
		}
	}
	return strings.Trim(other, "<@!>")
}

var commandForm = regexp.MustCompile(`^/([A-Za-z][A-Za-z0-9_]{0,31})(\s|$)`)

// command reads a command that opens the text (behind a mention of the bot):
// its name in lower case and its arguments. A path such as /etc/hosts is none.
func command(text string) (name, rest string, ok bool) {
	m := commandForm.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return strings.ToLower(m[1]), strings.TrimSpace(text[1+len(m[1]):]), true
}

// placeName returns the display name of a channel: its guild and its own name.
func placeName(guild, channel string) string {
	switch {
	case channel == "":
		return core.CleanName(guild)
	case guild == "":
		return core.CleanName("#" + channel)
	}
	return core.CleanName(guild + " #" + channel)
}
