package telegramtest

import (
	"encoding/json"

	"gatehouse/core"
)

// generalTopic is the topic every forum has. Messages in it carry no
// message_thread_id, and none can be sent with it ([server] check_message_topic).
const generalTopic = 1

// A Group is a basic group, a supergroup or a forum.
type Group struct {
	s  *Server
	at Conversation
}

// A GroupKind is which sort of group NewGroup makes.
type GroupKind string

const (
	Basic      GroupKind = "group"
	Supergroup GroupKind = "supergroup"
	Forum      GroupKind = "forum" // a supergroup with topics
)

// AddGroup makes a group with a creator, the first bot as a member (it is
// notified) and further users. core.Invalid: no title, an unknown kind, too many chats.
func (s *Server) AddGroup(kind GroupKind, title string, creator *User, members ...*User) (*Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if title == "" || creator == nil || len(s.chats) >= maxAccounts {
		return nil, core.Errorf(core.Invalid, "a group has a title and a creator, and there are at most %d", maxAccounts)
	}
	c := &chat{kind: string(kind), title: title, members: map[int64]string{creator.id: "creator"}, index: map[int]*message{}}
	switch kind {
	case Basic:
	case Forum:
		c.kind, c.forum, c.topics = "supergroup", true, map[int]string{}
		fallthrough
	case Supergroup:
		c.nextMsg = 2 // the message that made the group
	default:
		return nil, core.Errorf(core.Invalid, "no group is of kind %q", kind)
	}
	c.at = Conversation{Chat: s.groupID(c.kind)}
	s.chats[c.at] = c
	for _, m := range members {
		c.members[m.id] = "member"
	}
	g := &Group{s, c.at}
	s.Touch()
	s.emit(Change{Kind: ChangeChat, Conversation: c.at})
	g.place(c, s.bots[0], creator.account, "member")
	return g, nil
}

// NewGroup is AddGroup for tests: it panics where that fails.
func (s *Server) NewGroup(kind GroupKind, title string, creator *User, members ...*User) *Group {
	g, err := s.AddGroup(kind, title, creator, members...)
	if err != nil {
		panic(err)
	}
	return g
}

// groupID counts: basic groups are small negative numbers, supergroups begin
// with -100 ([td] DialogId.h).
func (s *Server) groupID(kind string) int64 {
	n := s.nextID
	s.nextID++
	if kind == "supergroup" {
		return -1_000_000_000_000 - n
	}
	return -n
}

// Group returns the group with that id, or nil.
func (s *Server) Group(id int64) *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := Conversation{Chat: id}
	if s.chats[at] == nil {
		return nil
	}
	return &Group{s, at}
}

// ID returns the group's chat id.
func (g *Group) ID() int64 { return g.at.Chat }

// Conversation returns where users Post to it.
func (g *Group) Conversation() Conversation { return g.at }

// Join lets a user in; bots get the service message.
func (g *Group) Join(u *User) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	c := g.s.chats[g.at]
	if present(c.members[u.id]) {
		return
	}
	c.members[u.id] = "member"
	g.s.service(c, u.account, u.account.Name()+" joined the group", func(w *wireMessage) { w.NewMembers = []Account{u.account} })
}

// Leave lets a user go; bots get the service message.
func (g *Group) Leave(u *User) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	c := g.s.chats[g.at]
	if !present(c.members[u.id]) {
		return
	}
	c.members[u.id] = "left"
	g.s.service(c, u.account, u.account.Name()+" left the group", func(w *wireMessage) { w.LeftMember = &u.account })
}

// Moderate has another bot delete what bots send from now on, before the platform has shown it.
func (g *Group) Moderate() {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.s.chats[g.at].moderated = true
}

// SetBot gives a bot a status: "member", "administrator", "left", or "kicked";
// the bot gets my_chat_member.
func (g *Group) SetBot(b Bot, by *User, status string) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.place(g.s.chats[g.at], b.b, by.account, status)
}

func (g *Group) place(c *chat, b *bot, by Account, status string) {
	before := c.members[b.account.ID]
	if before == status {
		return
	}
	if before == "" {
		before = "left"
	}
	c.members[b.account.ID] = status
	g.s.membership(b, c, by, before, status)
	g.s.Touch()
	if present(status) && !present(before) {
		g.s.service(c, by, by.Name()+" added "+b.account.Name(), func(w *wireMessage) { w.NewMembers = []Account{b.account} })
	}
}

// service writes a service message, which all bots of the group receive.
func (s *Server) service(c *chat, by Account, words string, fill func(*wireMessage)) *message {
	now := s.clock.Now()
	m := &message{shown: now, service: words, wire: wireMessage{From: &by, Chat: s.wireChat(c), Date: now.Unix()}}
	fill(&m.wire)
	s.add(c, m)
	for _, b := range s.listeners(c) {
		s.push(b, "message", &m.wire)
	}
	return m
}

// NewTopic opens a topic in a forum and returns its message_thread_id, which
// is the id of the service message that made it; 0 where the group is no forum.
func (g *Group) NewTopic(by *User, name string) int {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	c := g.s.chats[g.at]
	if !c.forum {
		return 0
	}
	id := max(c.nextMsg, 2)
	c.topics[id] = name
	g.s.service(c, by.account, by.account.Name()+" opened the topic "+name, func(w *wireMessage) {
		w.ThreadID, w.IsTopic = id, true
		w.TopicCreated = &wireTopic{Name: name, IconColor: 7322096}
	})
	return id
}

// DeleteTopic deletes a topic: its thread id is unknown from then on.
func (g *Group) DeleteTopic(thread int) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	delete(g.s.chats[g.at].topics, thread)
	g.s.Touch()
}

// Migrate makes a basic group a supergroup with another id: bots get the two
// service messages ([api] Message.migrate_to_chat_id, migrate_from_chat_id),
// and writing to the old id fails with the new one in the parameters. A group
// that is none any more, or was none, is returned as it is.
func (g *Group) Migrate(by *User) *Group {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.chats[g.at]
	if old.kind != "group" || old.migrated != 0 {
		return g
	}
	c := &chat{kind: "supergroup", title: old.title, members: map[int64]string{}, index: map[int]*message{}, nextMsg: 1}
	c.at = Conversation{Chat: s.groupID("supergroup")}
	for id, status := range old.members {
		c.members[id] = status
	}
	s.chats[c.at] = c
	s.service(old, by.account, "The group became a supergroup", func(w *wireMessage) { w.MigrateTo = c.at.Chat })
	old.migrated = c.at.Chat
	s.emit(Change{Kind: ChangeChat, Conversation: c.at})
	s.service(c, by.account, "This was a basic group", func(w *wireMessage) { w.MigrateFrom = old.at.Chat })
	return &Group{s, c.at}
}

// ChannelPost returns a channel's message forwarded into its discussion group: it
// speaks as a channel ("sender_chat"), which is no one.
func (g *Group) ChannelPost(channel int64, title, text string) Message {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[g.at]
	from := s.account(ChannelBot)
	now := s.clock.Now()
	m := &message{shown: now, wire: wireMessage{
		From: &from, SenderChat: &wireChat{ID: channel, Type: "channel", Title: title}, Chat: s.wireChat(c), Date: now.Unix(),
		Text: text, Entities: findEntities(text), extra: map[string]json.RawMessage{"is_automatic_forward": json.RawMessage("true")},
	}}
	s.add(c, m)
	for _, b := range s.listeners(c) {
		if s.hears(b, c, &m.wire) {
			s.push(b, "message", &m.wire)
		}
	}
	return s.view(c, m)
}
