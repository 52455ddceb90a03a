package inbound

import (
	"strings"
	"unicode"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// code matches what the platform writes into text for users, channels, roles and emoji
// (Reference, Message Formatting).
var code = core.Pattern(`<(@!?|@&|#|a?:[A-Za-z0-9_]{2,32}:)([0-9]{1,20})>`)

// readable returns text with names instead of ids, without a leading mention of the
// bot.
func (d *Decoder) readable(text string, m *wire.Message) string {
	text = strings.TrimSpace(text)
	for {
		at := code().FindStringSubmatchIndex(text)
		if at == nil || at[0] != 0 || !d.namesBot(text[at[2]:at[3]], text[at[4]:at[5]], m) {
			break
		}
		text = strings.TrimLeft(text[at[1]:], " \t\n,:")
	}
	return code().ReplaceAllStringFunc(text, func(s string) string {
		p := code().FindStringSubmatch(s)
		switch kind, id := p[1], p[2]; kind {
		case "@", "@!":
			return "@" + d.nameOf(id, m, s)
		case "#":
			if name := d.places.nameOf(id); name != "" {
				return "#" + asName(name)
			}
		case "@&":
		default:
			return strings.TrimPrefix(kind, "a")
		}
		return s
	})
}

// asName returns a name that others have chosen as it is put into the text of who mentions it:
// what is more than a word is in quotation marks, and it names no address of the web.
func asName(name string) string {
	name = connectors.NoAddress(name)
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"“”„`, r) }) {
		name = "“" + strings.Map(func(r rune) rune {
			if strings.ContainsRune(`"“”„`, r) {
				return '\''
			}
			return r
		}, name) + "”"
	}
	return name
}

// namesBot reports whether a code is a mention of the bot or of its role.
func (d *Decoder) namesBot(kind, id string, m *wire.Message) bool {
	switch kind {
	case "@", "@!":
		return id == d.o.ID
	case "@&":
		return d.places.isOwnRole(id)
	}
	return false
}

// nameOf returns the name of a mentioned user, or other without markup if it is
// unknown.
func (d *Decoder) nameOf(id string, m *wire.Message, other string) string {
	if id == d.o.ID {
		return d.name()
	}
	for _, u := range m.Mentions.V {
		if u.ID == id {
			if name := u.Peer().Name; name != "" {
				return asName(name)
			}
		}
	}
	return strings.Trim(other, "<@!>")
}

var commandForm = core.Pattern(`^/([A-Za-z][A-Za-z0-9_]{0,31})(\s|$)`)

// command returns the name, in lower case, and the arguments of a command at the
// start of the text (after a mention of the bot). A path such as /etc/hosts is none.
func command(text string) (name, rest string, ok bool) {
	m := commandForm().FindStringSubmatch(text)
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
