package discordtest

import (
	"encoding/json"
	"slices"
)

// Interaction contexts and installations ([interactions] "Interaction Context Types",
// [commands] "Contexts").
const (
	inGuild   = 0
	inBotDM   = 1
	inPrivate = 2 // "Group DMs and DMs other than the app's bot user"

	forGuild = 0
	forUser  = 1
)

// NewGroupDM makes a private channel of users, in which no bot can be. A bot that one of
// them has installed for themselves gets the interactions of that user there.
func (s *Server) NewGroupDM(users ...*User) ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &channel{id: s.newID(), kind: GroupDM, made: s.clock.Now(), index: map[ID]*message{}, people: map[ID]bool{}}
	for _, u := range users {
		c.people[u.id] = true
	}
	s.channels[c.id] = c
	return c.id
}

// Install adds the bot's application to the apps of a user ("User Install").
func (b Bot) Install(u *User) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.b.users == nil {
		b.b.users = map[ID]bool{}
	}
	b.b.users[u.id] = true
}

func (c *channel) context() int {
	switch {
	case c.guild != 0:
		return inGuild
	case c.kind == DM:
		return inBotDM
	}
	return inPrivate
}

// offers reports whether the app shows a command to a user in a channel. Where a
// command names no contexts it has all, and the installations that the application has
// ([docs#7108] has seen fewer).
func (b *bot) offers(cmd command, u *User, c *channel) bool {
	var def struct {
		Installs []int `json:"integration_types"`
		Contexts []int `json:"contexts"`
	}
	json.Unmarshal(cmd.Fields, &def)
	if def.Contexts != nil && !slices.Contains(def.Contexts, c.context()) {
		return false
	}
	by := func(install int) bool { return def.Installs == nil || slices.Contains(def.Installs, install) }
	return c.context() != inPrivate && by(forGuild) || b.users[u.id] && by(forUser)
}
