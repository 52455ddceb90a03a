package discordtest

import (
	"maps"
	"slices"
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

// AddGuild makes a guild with every bot and these people in it, and without
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
	s.dirty = true
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

// Guild is the guild with that id, or nil.
func (s *Server) Guild(id ID) *Guild {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guilds[id] == nil {
		return nil
	}
	return &Guild{s, id}
}

// ID is the guild's id.
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
	s.dirty = true
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

// Join lets a person in.
func (g *Guild) Join(u *User) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	in := g.s.guilds[g.id]
	if _, already := in.members[u.id]; !already {
		in.members[u.id] = g.s.clock.Now()
		g.s.dirty = true
	}
}

// Leave lets a person go.
func (g *Guild) Leave(u *User) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	delete(g.s.guilds[g.id].members, u.id)
	g.s.dirty = true
}

// AddBot lets a bot in again (GUILD_CREATE); every bot is in at first.
func (g *Guild) AddBot(b Bot) {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.guilds[g.id]
	if _, already := in.members[b.ID()]; !already {
		in.members[b.ID()] = s.clock.Now()
		s.dirty = true
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
	s.dirty = true
	s.dispatch(b.b, "GUILD_DELETE", g.id, IntentGuilds, func(bool) any { return map[string]ID{"id": g.id} })
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
	s.dirty = true
}

// Archive archives a thread, or with locked locks it too; a message revives
// one that is not locked ([threads] "Active & Archived Threads").
func (s *Server) Archive(thread ID, locked bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[thread]
	if c == nil || !c.thread() {
		return core.Errorf(core.NotFound, "no thread has the id %s", thread)
	}
	c.archived, c.locked = true, locked
	s.threadUpdated(c)
	return nil
}

func (s *Server) threadUpdated(c *channel) {
	s.dirty = true
	s.tell(c, "THREAD_UPDATE", IntentGuilds, func(b *bot, _ bool) any { return s.wireChannel(c, b) })
}

// revive brings an archived thread back before a message comes; false when it is locked.
func (s *Server) revive(c *channel) bool {
	if c.locked {
		return false
	}
	if c.archived {
		c.archived = false
		s.threadUpdated(c)
	}
	return true
}

// StartThread makes a public thread in a text channel: of a message, whose id
// it then shares, or of none ([threads]: "The created thread and the message
// it was started from will share the same id").
func (u *User) StartThread(in, of ID, name string) (ID, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.writable(u, in)
	if err != nil {
		return 0, err
	}
	if c.kind != Text || !threadName(name) {
		return 0, core.Errorf(core.Invalid, "threads are in text channels and have names of 1 to 100 characters")
	}
	m := c.index[of]
	switch {
	case of != 0 && m == nil:
		return 0, core.Errorf(core.NotFound, "no message %s", of)
	case s.channels[of] != nil:
		return 0, core.Errorf(core.Conflict, "that message has a thread")
	}
	return s.startThread(c, m, u.id, name).id, nil
}

func threadName(name string) bool {
	n := utf8.RuneCountInString(name)
	return n >= 1 && n <= 100
}

// startThread makes the thread, tells of it, and puts the message about it
// where the platform does: the starter message inside ([threads] "New Message
// Types"), or "started a thread" in the channel.
func (s *Server) startThread(c *channel, m *message, by ID, name string) *channel {
	t := &channel{kind: PublicThread, guild: c.guild, parent: c.id, name: name, owner: by, made: s.clock.Now(), index: map[ID]*message{}}
	if m != nil {
		t.id = m.ID
		m.Flags |= HasThread
	} else {
		t.id = s.newID()
	}
	s.openThread(t)
	if m != nil {
		s.post(t, &message{Type: typeStarter, Author: m.Author, Webhook: m.Webhook, Ref: &reference{Message: m.ID, Channel: c.id, Guild: c.guild}})
		s.changed(c, m)
	} else if c.kind == Text {
		s.post(c, &message{Type: typeThreadCreated, Author: by, Content: name, Ref: &reference{Channel: t.id, Guild: c.guild}})
	}
	return t
}

func (s *Server) openThread(t *channel) {
	s.channels[t.id] = t
	g := s.guilds[t.guild]
	g.threads = append(slices.Clone(g.threads), t.id)
	s.dirty = true
	s.emit(Change{Kind: ChangeChannel, Guild: t.guild, Channel: t.id, Name: t.name})
	s.tell(t, "THREAD_CREATE", IntentGuilds, func(b *bot, _ bool) any {
		w := s.wireChannel(t, b)
		w.New = true
		return w
	})
}

// NewPost starts a post in a forum: a thread whose first message has its id.
func (u *User) NewPost(forum ID, title string, m Outgoing) (ID, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.visible(u, forum)
	if err != nil {
		return 0, err
	}
	if c.kind != Forum || !threadName(title) {
		return 0, core.Errorf(core.Invalid, "posts are in forums and have titles of 1 to 100 characters")
	}
	t := &channel{id: s.newID(), kind: PublicThread, guild: c.guild, parent: c.id, name: title, owner: u.id, made: s.clock.Now(), index: map[ID]*message{}}
	msg, err := s.compose(u, t, m)
	if err != nil {
		return 0, err
	}
	s.openThread(t)
	msg.ID = t.id
	c.lastID = t.id
	s.post(t, msg)
	return t.id, nil
}
