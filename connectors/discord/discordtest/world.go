package discordtest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
)

// Bounds of the world.
const (
	maxHistory      = 1000    // messages kept per channel
	maxAccounts     = 200_000 // users, guilds, and channels
	maxInteractions = 10_000
	maxStored       = 64 << 20 // bytes of files
	maxNonces       = 100_000  // per bot
)

// typingLife is how long an indicator shows ([channel] "Trigger Typing
// Indicator": it "expires after 10 seconds").
const typingLife = 10 * time.Second

type pair struct{ bot, user ID }

// A bot is an account with a token. Guarded by Server.mu.
type bot struct {
	account  Account
	token    string
	given    string // the token in Options
	allowed  int    // privileged intents switched on in the portal
	sessions map[string]*session
	starts   []time.Time // IDENTIFYs of the last 24 hours
	lastID   time.Time   // the last IDENTIFY
	commands map[ID][]command
	creates  map[ID]*window // commands created today, by guild
	users    map[ID]bool    // who installed the application for themselves
	nonces   map[string]*nonce
	oldNonce []string
	buckets  map[string]*window
	global   window
	disturb  disturbance
}

// A nonce is what a message was sent with, for enforce_nonce.
type nonce struct {
	at      time.Time
	channel ID
	message ID
}

// A Bot is a handle on one bot of the platform.
type Bot struct {
	s *Server
	b *bot
}

// Bot returns the first bot.
func (s *Server) Bot() Bot { return Bot{s, s.bots[0]} }

// Bots returns all of them, in the order of Options.Bots.
func (s *Server) Bots() []Bot {
	out := make([]Bot, len(s.bots))
	for i, b := range s.bots {
		out[i] = Bot{s, b}
	}
	return out
}

// ID returns the bot's id, and its application's.
func (b Bot) ID() ID { return b.b.account.ID }

// Account returns what the platform reports of the bot.
func (b Bot) Account() Account { return b.b.account }

// Mention returns the text that mentions the bot.
func (b Bot) Mention() string { return "<@" + b.ID().String() + ">" }

// Token returns the bot's present token, without "Bot ".
func (b Bot) Token() string {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.b.token
}

// Revoke gives the bot a new token: REST answers the old one with 401, and its
// gateway connections are closed with 4004.
func (b Bot) Revoke() string {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resetToken(b.b)
	return b.b.token
}

func (s *Server) resetToken(b *bot) {
	delete(s.byToken, b.token)
	first, _, _ := strings.Cut(b.token, ".")
	b.token = first + "." + s.secret(6) + "." + s.secret(38)
	s.byToken[b.token] = b
	s.Touch()
	for _, ses := range b.sessions {
		if ses.conn != nil {
			ses.conn.close(closeAuth, "Authentication failed.")
		}
	}
	clear(b.sessions)
}

// SetIntents switches privileged intents on or off in the developer portal.
// Sessions that are keep what they have.
func (b Bot) SetIntents(intents int) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.b.allowed = intents & privileged
}

// A channel is anywhere messages are: a guild's channel, a thread, a DM.
// Guarded by Server.mu.
type channel struct {
	id       ID
	kind     int
	guild    ID
	parent   ID // of a thread
	name     string
	owner    ID // of a thread
	bot      ID // DM
	user     ID // DM
	opened   bool
	closed   bool // DM: the user lets the bot not write
	archived bool
	locked   bool
	tags     []Tag // a forum's
	applied  []ID  // a post's
	made     time.Time
	lastID   ID
	perms    map[ID]uint64 // by bot
	people   map[ID]bool   // GroupDM: who is in it
	messages []*message    // oldest first, at most maxHistory
	index    map[ID]*message
	typing   map[ID]time.Time // who types, until when
}

func (c *channel) thread() bool { return c.kind == PublicThread || c.kind == PrivateThread }

// A guild is a server. Guarded by Server.mu.
type guild struct {
	id       ID
	name     string
	owner    ID
	made     time.Time
	members  map[ID]time.Time // users and bots, since when
	channels []ID             // not threads
	threads  []ID
	perms    map[ID]uint64 // by bot
}

// AddUser makes a user. An ID of 0 takes the next one; an ID already taken
// by a user renames that person, so that a program that restarts with its
// state can name its users again. A Username is made of the name when empty.
// core.Invalid: no name, a bot's id, a user name that is taken, or too many users.
func (s *Server) AddUser(a Account) (*User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[a.ID]
	switch {
	case a.Name == "":
		return nil, core.Errorf(core.Invalid, "a person has a name")
	case s.byBot[a.ID] != nil:
		return nil, core.Errorf(core.Invalid, "a bot has the id %s", a.ID)
	case u == nil && len(s.users) >= maxAccounts:
		return nil, core.Errorf(core.Invalid, "more than %d people", maxAccounts)
	}
	if a.ID == 0 {
		a.ID = s.newID()
	}
	if a.Username == "" {
		if u != nil {
			a.Username = u.account.Username
		} else {
			a.Username = s.freeName(a.Name)
		}
	}
	if owner := s.names[strings.ToLower(a.Username)]; owner != 0 && owner != a.ID {
		return nil, core.Errorf(core.Invalid, "the user name %s is taken", a.Username)
	}
	a.Bot = false
	if u == nil {
		u = &User{s: s, id: a.ID}
		s.users[a.ID] = u
	}
	delete(s.names, strings.ToLower(u.account.Username))
	s.names[strings.ToLower(a.Username)] = a.ID
	u.account = a
	s.Touch()
	s.emit(Change{Kind: ChangeUser, User: &a})
	return u, nil
}

// freeName makes a user name of what letters and digits a name has.
func (s *Server) freeName(name string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	if len(base) < 2 {
		base += "someone"
	}
	name = base
	for s.names[name] != 0 {
		name = base + s.secret(4)
	}
	return strings.ToLower(name)
}

// NewUser makes a user, for tests. Like New it panics where that is
// impossible (an empty name, 200,000 users).
func (s *Server) NewUser(name string) *User {
	u, err := s.AddUser(Account{Name: name})
	if err != nil {
		panic(err)
	}
	return u
}

// User returns the user with that id, or nil.
func (s *Server) User(id ID) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users[id]
}

// Users returns all users, oldest first.
func (s *Server) Users() []*User {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*User, 0, len(s.users))
	for _, u := range s.users {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *User) int { return cmp.Compare(a.id, b.id) })
	return out
}

// dm returns the private channel of a user and a bot, made on first use.
func (s *Server) dm(b, user ID) *channel {
	at := pair{b, user}
	if c := s.channels[s.direct[at]]; c != nil {
		return c
	}
	c := &channel{id: s.newID(), kind: DM, bot: b, user: user, made: s.clock.Now(), index: map[ID]*message{}}
	s.channels[c.id] = c
	s.direct[at] = c.id
	s.Touch()
	return c
}

// account finds a user or bot; an id the world does not know is no one.
func (s *Server) account(id ID) Account {
	if b := s.byBot[id]; b != nil {
		return b.account
	}
	if u := s.users[id]; u != nil {
		return u.account
	}
	return Account{ID: id, Name: "Deleted User", Username: "deleted_user"}
}

// add appends m and shows it; the oldest message makes room.
func (s *Server) add(c *channel, m *message) {
	if m.ID == 0 {
		m.ID = s.newID()
	}
	if m.At.IsZero() {
		m.At = s.clock.Now()
	}
	s.put(c, m)
	delete(c.typing, m.Author)
	s.Touch()
	s.emitMessage(ChangeMessage, c, m, m.At)
}

func (s *Server) put(c *channel, m *message) {
	if len(c.messages) >= maxHistory {
		delete(c.index, c.messages[0].ID)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	c.messages = append(c.messages, m)
	c.index[m.ID] = m
	c.lastID = max(c.lastID, m.ID)
}

// remove takes m out of the channel.
func (s *Server) remove(c *channel, m *message) {
	delete(c.index, m.ID)
	c.messages = slices.DeleteFunc(slices.Clone(c.messages), func(x *message) bool { return x == m })
	s.Touch()
	s.emit(Change{Kind: ChangeDelete, Channel: c.id, MessageID: m.ID})
}

// can reports whether b has all of perms in c. In a DM a bot may do what the
// conversation needs, never moderate. Threads have their parent's permissions
// ([threads] "Permissions").
func (s *Server) can(b *bot, c *channel, perms uint64) bool {
	return s.permissions(b, c)&perms == perms
}

func (s *Server) permissions(b *bot, c *channel) uint64 {
	if c.kind == DM {
		if c.bot != b.account.ID {
			return 0
		}
		return DefaultPermissions
	}
	g := s.guilds[c.guild]
	if g == nil {
		return 0
	}
	if _, in := g.members[b.account.ID]; !in {
		return 0
	}
	if c.thread() {
		if p := s.channels[c.parent]; p != nil {
			c = p
		}
	}
	if p, ok := c.perms[b.account.ID]; ok {
		return p
	}
	if p, ok := g.perms[b.account.ID]; ok {
		return p
	}
	return DefaultPermissions
}

// mutual reports whether a bot and a user share a guild.
func (s *Server) mutual(b, user ID) bool {
	for _, g := range s.guilds {
		_, x := g.members[b]
		_, y := g.members[user]
		if x && y {
			return true
		}
	}
	return false
}
