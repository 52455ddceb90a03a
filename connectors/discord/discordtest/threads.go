package discordtest

import (
	"slices"
	"unicode/utf8"

	"gatehouse/core"
)

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
	s.Touch()
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

// startThread makes the thread, reports it, and adds the message about it
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
	s.Touch()
	s.emit(Change{Kind: ChangeChannel, Guild: t.guild, Channel: t.id, Name: t.name})
	s.tell(t, "THREAD_CREATE", IntentGuilds, func(b *bot, _ bool) any {
		w := s.wireChannel(t, b)
		w.New = true
		return w
	})
}

// NewPost starts a post in a forum: a thread whose first message has its id.
// Tags are names of the forum's.
func (u *User) NewPost(forum ID, title string, m Outgoing, tags ...string) (ID, error) {
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
	for _, name := range tags {
		at := slices.IndexFunc(c.tags, func(g Tag) bool { return g.Name == name })
		if at < 0 || len(t.applied) == 5 { // [threads] "a thread can have up to 5 tags"
			return 0, core.Errorf(core.Invalid, "the forum has no tag %q, or the post has 5", name)
		}
		t.applied = append(t.applied, c.tags[at].ID)
	}
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

// A Tag is one that posts of a forum may have ([channel] "Forum Tag Object").
type Tag struct {
	ID        ID     `json:"id"`
	Name      string `json:"name"` // at most 20 characters
	Moderated bool   `json:"moderated"`
}

// SetTags gives a forum tags, at most 20 (CHANNEL_UPDATE). NotFound for what is
// no forum, Invalid for a name that is not 1 to 20 characters.
func (g *Guild) SetTags(forum ID, names ...string) error {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[forum]
	if c == nil || c.kind != Forum || c.guild != g.id {
		return core.Errorf(core.NotFound, "no forum has the id %s", forum)
	}
	var tags []Tag
	for _, name := range names {
		if n := utf8.RuneCountInString(name); n < 1 || n > 20 || len(tags) == 20 {
			return core.Errorf(core.Invalid, "a forum has at most 20 tags of 1 to 20 characters")
		}
		tags = append(tags, Tag{ID: s.newID(), Name: name})
	}
	c.tags = tags
	s.Touch()
	s.tell(c, "CHANNEL_UPDATE", IntentGuilds, func(b *bot, _ bool) any { return s.wireChannel(c, b) })
	return nil
}

// modifyChannel implements [channel] "Modify Channel" as far as a thread is archived or
// not: unarchiving needs nothing more than writing there, unless it is locked;
// then, and for archiving, MANAGE_THREADS or having made it.
func (s *Server) modifyChannel(c *call) (any, *apiError) {
	ch, fault := s.readIn(c)
	if fault != nil {
		return nil, fault
	}
	archived := c.f.boolean("archived", ch.archived)
	for key := range c.f.fields {
		if key != "archived" {
			c.f.wrong(key, "NOT_SIMULATED", "Only archived is simulated.")
		}
	}
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	mine := ch.owner == c.bot.account.ID
	switch {
	case !ch.thread():
		return nil, errChannelType
	case !s.can(c.bot, ch, SendInThreads), (archived || ch.locked) && !mine && !s.can(c.bot, ch, ManageThreads):
		return nil, errPermissions
	}
	ch.archived = archived
	s.threadUpdated(ch)
	return s.wireChannel(ch, c.bot), nil
}
