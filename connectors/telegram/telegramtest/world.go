package telegramtest

import (
	"strings"
	"time"

	"gatehouse/core"
)

// Bounds of the world.
const (
	maxHistory  = 500     // messages kept per chat
	maxAccounts = 200_000 // users, and chats
	maxQueries  = 10_000  // callback queries per bot that can still be answered
	maxDrafts   = 32      // drafts shown in one chat at once
)

// Shared accounts of the platform: who speaks for an anonymous administrator,
// for a channel, and the platform itself ([api] Message: "sender_chat … for
// backward compatibility, the field from contains a fake sender user").
const (
	AnonymousAdmin int64 = 1087968824
	ChannelBot     int64 = 136817688
	Platform       int64 = 777000
)

// A Conversation names a chat. For the private chat of a user and a bot,
// Bot is the bot's and Chat the user's id; for a group Bot is 0 and Chat
// the group's negative id.
type Conversation struct {
	Bot  int64 `json:"bot,omitempty"`
	Chat int64 `json:"chat"`
}

// A chat is one conversation. Guarded by Server.mu.
type chat struct {
	at      Conversation
	kind    string // private, group, supergroup
	title   string
	forum   bool
	members map[int64]string // group: account → status ([api] ChatMember)
	topics  map[int]string   // forum: thread → name

	messages []*message // oldest first, at most maxHistory
	index    map[int]*message
	nextMsg  int // groups; private chats use the bot's counter

	started, blocked bool  // private: the user wrote once; keeps the bot out
	migrated         int64 // group: the supergroup it became
	moderated        bool  // group: another bot deletes at once what the bot sends
	lastBot          int64 // the bot that spoke last, for privacy mode

	pace, minute, drafting meter
	drafts                 []*draft
	typing                 map[int64]Typing // by bot
}

func (c *chat) group() bool { return c.kind != "private" }

// A message is what a chat holds: what bots receive, and what only users see.
type message struct {
	wire      wireMessage
	shown     time.Time
	edited    time.Time
	edits     int
	service   string
	reactions map[int64][]string
}

type draft struct {
	id       int64
	thread   int
	text     string
	entities []Entity
	at       time.Time
}

// draftLife is how long a draft is without a change ([api] sendMessageDraft:
// "a temporary 30-second preview").
const draftLife = 30 * time.Second

// typingLife is how long an action shows ([api] sendChatAction: "5 seconds or
// less (when a message arrives from your bot, Telegram clients clear its
// typing status)").
const typingLife = 5 * time.Second

// AddUser makes a user. An ID of 0 takes the next one; an ID already taken
// by a user renames that person, so that a program that restarts with its
// state can name its users again. core.Invalid: no first name, a bot's id or
// user name, or too many users.
func (s *Server) AddUser(a Account) (*User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[a.ID]
	if a.FirstName == "" {
		return nil, core.Errorf(core.Invalid, "a person has a first name")
	}
	if owner := s.names[strings.ToLower(a.Username)]; a.Username != "" && owner != 0 && owner != a.ID {
		return nil, core.Errorf(core.Invalid, "the user name %s is taken", a.Username)
	}
	if u == nil {
		if a.ID == 0 {
			a.ID = s.nextID
			s.nextID++
		}
		if a.ID < 0 || s.byBot[a.ID] != nil || len(s.users) >= maxAccounts {
			return nil, core.Errorf(core.Invalid, "no person can have the id %d", a.ID)
		}
		u = &User{s: s, id: a.ID}
		s.users[a.ID] = u
		s.nextID = max(s.nextID, a.ID+1)
		if a.ID > 1<<52 { // keep counting where ordinary ids are
			s.nextID = 1_000_000_001 + int64(len(s.users))
		}
	}
	a.IsBot = false
	delete(s.names, strings.ToLower(u.account.Username))
	if a.Username != "" {
		s.names[strings.ToLower(a.Username)] = a.ID
	}
	u.account = a
	s.Touch()
	s.emit(Change{Kind: ChangeUser, User: &a})
	return u, nil
}

// NewUser makes a user with a first name, for tests. Like New it panics
// where that is impossible (an empty name, 200,000 users).
func (s *Server) NewUser(name string) *User {
	u, err := s.AddUser(Account{FirstName: name})
	if err != nil {
		panic(err)
	}
	return u
}

// User returns the user with that id, or nil.
func (s *Server) User(id int64) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users[id]
}

// Users returns all users, in no order.
func (s *Server) Users() []*User {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*User, 0, len(s.users))
	for _, u := range s.users {
		out = append(out, u)
	}
	return out
}

// private returns the chat of a user with a bot, made on first use.
func (s *Server) private(b *bot, user int64) *chat {
	at := Conversation{b.account.ID, user}
	c := s.chats[at]
	if c == nil {
		c = &chat{at: at, kind: "private", index: map[int]*message{}}
		s.chats[at] = c
	}
	return c
}

// add numbers m, appends it and shows it; the oldest message makes room.
func (s *Server) add(c *chat, m *message) {
	next := &c.nextMsg
	if !c.group() {
		next = &s.byBot[c.at.Bot].nextMsg // [td]: private chats of an account share one counter
	}
	*next = max(*next, 1)
	m.wire.MessageID = *next
	*next++
	s.put(c, m)
	s.Touch()
	s.emitMessage(ChangeMessage, c, m, m.shown)
}

func (s *Server) put(c *chat, m *message) {
	if len(c.messages) >= maxHistory {
		delete(c.index, c.messages[0].wire.MessageID)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	c.messages = append(c.messages, m)
	c.index[m.wire.MessageID] = m
}

// account finds a user or bot; an id the world does not know is no one.
func (s *Server) account(id int64) Account {
	if b := s.byBot[id]; b != nil {
		return b.account
	}
	if u := s.users[id]; u != nil {
		return u.account
	}
	switch id {
	case AnonymousAdmin:
		return Account{ID: id, IsBot: true, FirstName: "Group", Username: "GroupAnonymousBot"}
	case ChannelBot:
		return Account{ID: id, IsBot: true, FirstName: "Channel", Username: "Channel_Bot"}
	case Platform:
		return Account{ID: id, FirstName: "Telegram"}
	}
	return Account{ID: id}
}

// wireChat returns c as bots see it.
func (s *Server) wireChat(c *chat) wireChat {
	if !c.group() {
		a := s.account(c.at.Chat)
		return wireChat{ID: a.ID, Type: "private", FirstName: a.FirstName, LastName: a.LastName, Username: a.Username}
	}
	return wireChat{ID: c.at.Chat, Type: c.kind, Title: c.title, IsForum: c.forum}
}

// listeners returns the bots that receive what happens in c.
func (s *Server) listeners(c *chat) []*bot {
	if !c.group() {
		if c.blocked {
			return nil
		}
		return []*bot{s.byBot[c.at.Bot]}
	}
	var out []*bot
	for _, b := range s.bots {
		if present(c.members[b.account.ID]) {
			out = append(out, b)
		}
	}
	return out
}

func present(status string) bool {
	return status == "member" || status == "administrator" || status == "creator"
}

// hears reports whether b gets a user's message in a group ([features] "Privacy
// mode": commands meant for it, replies to it, mentions, and everything once
// it is an administrator or has privacy mode off).
func (s *Server) hears(b *bot, c *chat, m *wireMessage) bool {
	if !c.group() || !b.privacy || c.members[b.account.ID] == "administrator" {
		return true
	}
	if m.ReplyTo != nil && m.ReplyTo.From != nil && m.ReplyTo.From.ID == b.account.ID {
		return true
	}
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	at := "@" + strings.ToLower(b.account.Username)
	for _, e := range entities {
		word := strings.ToLower(slice16(text, e.Offset, e.Length))
		switch e.Type {
		case "bot_command":
			if strings.HasSuffix(word, at) || !strings.Contains(word, "@") && c.lastBot == b.account.ID {
				return true
			}
		case "mention":
			if word == at {
				return true
			}
		case "text_mention":
			if e.User != nil && e.User.ID == b.account.ID {
				return true
			}
		}
	}
	return false
}

// slice16 returns the part of s from offset on, both counted in UTF-16 code units.
func slice16(s string, offset, length int) string {
	at, start, end := 0, len(s), len(s)
	for i, r := range s {
		if at == offset {
			start = i
		}
		if at == offset+length {
			end = i
			break
		}
		at += units(string(r))
	}
	return s[min(start, end):end]
}
