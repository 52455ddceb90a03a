package core

import (
	"slices"
	"strings"
)

// Person reports whether p is one person, who may ask for access and be given
// it: no bot, no account that stands for many (anonymous admin, channel,
// webhook), no account of the platform itself, and no id that is no person's
// (zero, negative, empty).
func (p Peer) Person() bool {
	return p.Platform != "" && !p.Shared && !p.Bot && personalID(p.ID) && !ServiceAccount(p.Platform, p.ID)
}

// personalID reports whether id can be a person's. Platforms give negative
// numbers to groups and channels.
func personalID(id string) bool {
	id = strings.TrimSpace(id)
	return strings.Trim(id, "0") != "" && !strings.HasPrefix(id, "-") && !strings.HasPrefix(id, "+")
}

// serviceAccounts are accounts of the platforms themselves, by platform: their
// messages come from no one person. Telegram's are those that its clients treat
// so (the second of a pair is the test servers'): service notifications,
// anonymous group admins, channels that write in groups, replies to comments,
// verification codes, spam reports, and older notification accounts.
var serviceAccounts = map[string][]string{
	"telegram": {
		"777000", "42777", "333000",
		"1087968824", "552888",
		"136817688", "936174",
		"1271266957", "708513",
		"489000",
		"5434988373", "2200583762",
		"2666000",
	},
	"discord": {"1", "643945264868098049"}, // Clyde, and Discord's own messages
}

// ServiceAccount reports whether id is an account of the platform itself.
func ServiceAccount(platform, id string) bool {
	return slices.Contains(serviceAccounts[platform], id)
}
