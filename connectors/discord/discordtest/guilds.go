package discordtest

import (
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
)

// A Guild is a handle on a server.
type Guild struct {
	s  *Server
	id ID
}

// AddGuild makes a guild with every bot and these users in it, and without
// channels. core.Invalid: a name that is not 2–100 characters, no owner, or
// too many guilds.
func (s *Server) AddGuild(name string, owner *User, members ...*User) (*Guild, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := utf8.RuneCountInString(name); n < 2 || n > 100 { // resources/guild: "2-100 characters"
		return nil, core.Errorf(core.Invalid, "a guild's name has 2 to 100 characters")
	}
	if owner == nil || len(s.guilds) >= maxAccounts {
		return nil, core.Errorf(core.Invalid, "a guild has an owner, and there are at most %d", maxAccounts)
	}
	now := s.clock.Now()
	g := &guild{id: s.newID(), name: name, owner: owner.id, made: now, members: map[ID]time.Time{}, perms: map[ID]uint64{}}
	for _, u := range append(members, owner) {
		g.members[u.id] = now
	}
	for _, b := range s.bots {
		g.members[b.account.ID] = now
	}
	s.guilds[g.id] = g
	s.Touch()
	s.emit(Change{Kind: ChangeGuild, Guild: g.id, Name: name})
	for _, b := range s.bots {
		s.sendGuild(b, g)
	}
	return &Guild{s, g.id}, nil
}

// NewGuild is AddGuild for tests: it panics where that fails.
func (s *Server) NewGuild(name string, owner *User, members ...*User) *Guild {
	g, err := s.AddGuild(name, owner, members...)
	if err != nil {
		panic(err)
	}
	return g
}

// Guild returns the guild with that id, or nil.
func (s *Server) Guild(id ID) *Guild {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guilds[id] == nil {
		return nil
	}
	return &Guild{s, id}
}

// ID returns the guild's id.
func (g *Guild) ID() ID { return g.id }

// AddChannel makes a channel of kind Text or Forum. core.Invalid: another
// kind, a name that is not 1–100 characters, or too many channels. Names are
// lower case without spaces, as in the app.
func (g *Guild) AddChannel(kind int, name string) (ID, error) {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.guilds[g.id]
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "-")
	if n := utf8.RuneCountInString(name); n < 1 || n > 100 || kind != Text && kind != Forum {
		return 0, core.Errorf(core.Invalid, "a channel is text or forum and its name has 1 to 100 characters")
	}
	if len(s.channels) >= maxAccounts {
		return 0, core.Errorf(core.Invalid, "more than %d channels", maxAccounts)
	}
	c := &channel{id: s.newID(), kind: kind, guild: g.id, name: name, made: s.clock.Now(), index: map[ID]*message{}}
	s.channels[c.id] = c
	in.channels = append(in.channels, c.id)
	s.Touch()
	s.emit(Change{Kind: ChangeChannel, Guild: g.id, Channel: c.id, Name: name})
	s.tell(c, "CHANNEL_CREATE", IntentGuilds, func(b *bot, _ bool) any { return s.wireChannel(c, b) })
	return c.id, nil
}

// NewChannel makes a text channel, for tests: it panics where AddChannel fails.
func (g *Guild) NewChannel(name string) ID { return g.must(Text, name) }

// NewForum makes a forum channel, for tests: it panics where AddChannel fails.
func (g *Guild) NewForum(name string) ID { return g.must(Forum, name) }

func (g *Guild) must(kind int, name string) ID {
	id, err := g.AddChannel(kind, name)
	if err != nil {
		panic(err)
	}
	return id
}

// Join lets a user in.
func (g *Guild) Join(u *User) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	in := g.s.guilds[g.id]
	if _, already := in.members[u.id]; !already {
		in.members[u.id] = g.s.clock.Now()
		g.s.Touch()
	}
}

// Leave lets a user go.
func (g *Guild) Leave(u *User) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	delete(g.s.guilds[g.id].members, u.id)
	g.s.Touch()
}

// AddBot lets a bot in again (GUILD_CREATE); every bot is in at first.
func (g *Guild) AddBot(b Bot) {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.guilds[g.id]
	if _, already := in.members[b.ID()]; !already {
		in.members[b.ID()] = s.clock.Now()
		s.Touch()
		s.sendGuild(b.b, in)
	}
}

// RemoveBot throws a bot out (GUILD_DELETE); REST answers 50001 from then on.
func (g *Guild) RemoveBot(b Bot) {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.guilds[g.id]
	if _, member := in.members[b.ID()]; !member {
		return
	}
	delete(in.members, b.ID())
	s.Touch()
	s.dispatch(b.b, "GUILD_DELETE", g.id, IntentGuilds, func(bool) any { return map[string]ID{"id": g.id} })
}

// Outage makes the guild unavailable for a moment (GUILD_DELETE with unavailable,
// then GUILD_CREATE); no one leaves it.
func (g *Guild) Outage() {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.guilds[g.id]
	for _, b := range s.bots {
		if _, member := in.members[b.account.ID]; member {
			s.dispatch(b, "GUILD_DELETE", g.id, IntentGuilds, func(bool) any { return map[string]any{"id": g.id, "unavailable": true} })
			s.sendGuild(b, in)
		}
	}
}

// DeleteChannel deletes a channel with its threads (CHANNEL_DELETE alone is
// notified of them); no one finds it any more.
func (g *Guild) DeleteChannel(id ID) error {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in, c := s.guilds[g.id], s.channels[id]
	if c == nil || c.guild != g.id || c.thread() {
		return core.Errorf(core.NotFound, "the guild has no channel %s", id)
	}
	s.tell(c, "CHANNEL_DELETE", IntentGuilds, func(b *bot, _ bool) any { return s.wireChannel(c, b) })
	for _, t := range in.threads {
		if s.channels[t].parent == id {
			delete(s.channels, t)
			in.threads = without(in.threads, t)
		}
	}
	delete(s.channels, id)
	in.channels = without(in.channels, id)
	s.Touch()
	return nil
}

// Permit sets a bot's permissions in one channel of the guild (0: in all that
// have none of their own). Threads have those of their channel.
func (g *Guild) Permit(b Bot, in ID, perms uint64) {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	to := &s.guilds[g.id].perms
	if c := s.channels[in]; c != nil && c.guild == g.id {
		to = &c.perms
	}
	m := maps.Clone(*to)
	if m == nil {
		m = map[ID]uint64{}
	}
	m[b.ID()] = perms
	*to = m
	s.Touch()
}
