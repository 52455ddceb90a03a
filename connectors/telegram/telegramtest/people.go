package telegramtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"gatehouse/core"
)

// A User is a user who uses the app. Its methods do what the user does;
// every bot concerned gets its update.
type User struct {
	s       *Server
	id      int64
	account Account
}

// ID returns the user's immutable id, and that of their private chats.
func (u *User) ID() int64 { return u.id }

// Account returns what the platform reports of the user.
func (u *User) Account() Account {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return u.account
}

// DM returns the user's private chat with the first bot.
func (u *User) DM() Conversation { return u.With(u.s.Bot()) }

// With returns the user's private chat with b.
func (u *User) With(b Bot) Conversation { return Conversation{b.b.account.ID, u.id} }

// An Outgoing is what a user sends.
type Outgoing struct {
	Text     string   `json:"text,omitempty"`     // with a File it is the caption
	Entities []Entity `json:"entities,omitempty"` // nil: those the app finds (commands, mentions, links)
	Thread   int      `json:"thread,omitempty"`   // forum topic
	ReplyTo  int      `json:"reply_to,omitempty"`
	Quote    string   `json:"quote,omitempty"` // the part of the answered text that is quoted
	File     *File    `json:"file,omitempty"`
	Album    string   `json:"album,omitempty"` // media_group_id
	// Forward is the account whose message is forwarded; 0 is none.
	Forward int64 `json:"forward,omitempty"`
	// Anonymous sends as the group itself: an anonymous administrator.
	Anonymous bool `json:"anonymous,omitempty"`
	// Extra are further fields of the message as they are: location, contact,
	// sticker, poll, unknown ones.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// Send writes to the first bot in private. It panics only where Post could
// not fail for a test: never for a user who has not blocked the bot.
func (u *User) Send(text string) Message {
	m, err := u.Post(u.DM(), Outgoing{Text: text})
	if err != nil {
		panic(err)
	}
	return m
}

// Post sends m to a chat. The first message to a bot starts it. Errors:
// NotFound for a chat the user is not in, Denied while the user blocks
// the bot, Invalid for an empty or too long text or a wrong entity.
func (u *User) Post(to Conversation, m Outgoing) (Message, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(u, to)
	if err != nil {
		return Message{}, err
	}
	msg, err := s.compose(u, c, m)
	if err != nil {
		return Message{}, err
	}
	c.started = true
	s.add(c, msg)
	for _, b := range s.listeners(c) {
		if s.hears(b, c, &msg.wire) {
			s.push(b, "message", &msg.wire)
		}
	}
	return s.view(c, msg), nil
}

// open finds the chat that a user may write in.
func (s *Server) open(u *User, to Conversation) (*chat, error) {
	if to.Bot != 0 {
		b := s.byBot[to.Bot]
		if b == nil || to.Chat != u.id {
			return nil, core.Errorf(core.NotFound, "no such private chat")
		}
		c := s.private(b, u.id)
		if c.blocked {
			return nil, core.Errorf(core.Denied, "this person has blocked the bot")
		}
		return c, nil
	}
	c := s.chats[to]
	if c == nil || !present(c.members[u.id]) || c.migrated != 0 {
		return nil, core.Errorf(core.NotFound, "this person is in no such group")
	}
	return c, nil
}

func (s *Server) compose(u *User, c *chat, m Outgoing) (*message, error) {
	now := s.clock.Now()
	from := u.account
	msg := &message{shown: now, wire: wireMessage{From: &from, Chat: s.wireChat(c), Date: now.Unix(), MediaGroupID: m.Album, extra: maps.Clone(m.Extra)}}
	w := &msg.wire
	if m.Anonymous && c.group() {
		self, anonymous := s.wireChat(c), s.account(AnonymousAdmin)
		w.SenderChat, w.From = &self, &anonymous
	}
	if err := s.thread(c, w, m); err != nil {
		return nil, err
	}
	if m.Forward != 0 {
		a := s.account(m.Forward)
		w.ForwardOrigin = &wireOrigin{Type: "user", Date: w.Date, User: &a}
		w.ForwardFrom, w.ForwardDate = &a, w.Date
	}
	text, entities, fault := fixText(m.Text, m.Entities)
	limit := maxText
	if m.File != nil {
		limit = maxCaption
	}
	switch {
	case fault != nil:
		return nil, core.Errorf(core.Invalid, "%s", fault.text)
	case units(text) > limit:
		return nil, core.Errorf(core.Invalid, "the app sends at most %d characters", limit)
	case text == "" && m.File == nil && len(m.Extra) == 0:
		return nil, core.Errorf(core.Invalid, "nothing to send")
	}
	if m.File == nil {
		w.Text, w.Entities = text, entities
		return msg, nil
	}
	w.Caption, w.CaptionEntities = text, entities
	return msg, s.attach(w, *m.File)
}

// thread sets the topic and the answered message. In a topic a message that
// answers nothing answers the message that made the topic, as on the platform.
func (s *Server) thread(c *chat, w *wireMessage, m Outgoing) error {
	if m.Thread != 0 && m.Thread != generalTopic {
		if !c.forum || c.topics[m.Thread] == "" {
			return core.Errorf(core.NotFound, "no such topic")
		}
		w.ThreadID, w.IsTopic = m.Thread, true
		w.ReplyTo = answered(c.index[m.Thread])
	}
	if m.ReplyTo != 0 {
		to := c.index[m.ReplyTo]
		if to == nil {
			return core.Errorf(core.NotFound, "no message %d to answer", m.ReplyTo)
		}
		w.ReplyTo = answered(to)
		if m.Quote != "" {
			w.Quote = &wireQuote{Text: m.Quote, IsManual: true}
		}
	}
	return nil
}

// answered returns a message as it appears inside its answer: without the message
// that it answers itself ([api] Message.reply_to_message).
func answered(m *message) *wireMessage {
	if m == nil {
		return nil
	}
	w := m.wire
	w.ReplyTo = nil
	return &w
}

// Edit changes the text (or caption) of a message that the user sent.
func (u *User) Edit(in Conversation, id int, text string) (Message, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(u, in)
	if err != nil {
		return Message{}, err
	}
	m := c.index[id]
	if m == nil || m.wire.From == nil || m.wire.From.ID != u.id {
		return Message{}, core.Errorf(core.NotFound, "no message %d of this person", id)
	}
	text, entities, fault := fixText(text, nil)
	if fault != nil || text == "" || units(text) > maxText {
		return Message{}, core.Errorf(core.Invalid, "this text can't be sent")
	}
	if m.wire.Caption != "" {
		m.wire.Caption, m.wire.CaptionEntities = text, entities
	} else {
		m.wire.Text, m.wire.Entities = text, entities
	}
	s.edited(c, m)
	for _, b := range s.listeners(c) {
		if s.hears(b, c, &m.wire) {
			s.push(b, "edited_message", &m.wire)
		}
	}
	return s.view(c, m), nil
}

func (s *Server) edited(c *chat, m *message) {
	m.edited = s.clock.Now()
	m.wire.EditDate = m.edited.Unix()
	m.edits++
	s.Touch()
	s.emitMessage(ChangeEdit, c, m, m.edited)
}

// A query is a pressed button that waits for its answer.
type query struct {
	user int64
	in   Conversation
	at   time.Time
}

// Press presses the button of a message that carries data, and returns the
// callback query's id. The answer comes as a Change.
func (u *User) Press(in Conversation, id int, data string) (string, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(u, in)
	if err != nil {
		return "", err
	}
	m := c.index[id]
	if m == nil || m.wire.ReplyMarkup == nil || m.wire.From == nil {
		return "", core.Errorf(core.NotFound, "message %d has no buttons", id)
	}
	if !slices.ContainsFunc(m.wire.ReplyMarkup.Rows, func(row []Button) bool {
		return slices.ContainsFunc(row, func(b Button) bool { return b.CallbackData == data && data != "" })
	}) {
		return "", core.Errorf(core.NotFound, "message %d has no button with that data", id)
	}
	b := s.byBot[m.wire.From.ID]
	s.queryID++
	qid := s.queryID
	b.remember(qid, &query{u.id, in, s.clock.Now()})
	s.push(b, "callback_query", struct {
		ID       string       `json:"id"`
		From     Account      `json:"from"`
		Message  *wireMessage `json:"message"`
		Instance string       `json:"chat_instance"`
		Data     string       `json:"data"`
	}{strconv.FormatInt(qid, 10), u.account, &m.wire, strconv.FormatInt(c.at.Chat*7919+1, 10), data})
	return strconv.FormatInt(qid, 10), nil
}

func (b *bot) remember(id int64, q *query) {
	if len(b.queryAge) >= maxQueries {
		delete(b.queries, b.queryAge[0])
		b.queryAge = b.queryAge[1:]
	}
	b.queries[id] = q
	b.queryAge = append(b.queryAge, id)
}

type wireReaction struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"`
}

// React sets the user's reactions to a message; none takes them back. Bots
// hear of it where they may and asked to ([api] Update.message_reaction).
func (u *User) React(in Conversation, id int, emoji ...string) error {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(u, in)
	if err != nil {
		return err
	}
	m := c.index[id]
	if m == nil {
		return core.Errorf(core.NotFound, "no message %d", id)
	}
	before := m.reactions[u.id]
	s.react(c, m, u.id, emoji)
	payload := struct {
		Chat      wireChat       `json:"chat"`
		MessageID int            `json:"message_id"`
		User      Account        `json:"user"`
		Date      int64          `json:"date"`
		Old       []wireReaction `json:"old_reaction"`
		New       []wireReaction `json:"new_reaction"`
	}{s.wireChat(c), id, u.account, s.clock.Now().Unix(), reactions(before), reactions(emoji)}
	for _, b := range s.listeners(c) {
		if !c.group() || c.members[b.account.ID] == "administrator" {
			s.push(b, "message_reaction", payload)
		}
	}
	return nil
}

func reactions(emoji []string) []wireReaction {
	out := make([]wireReaction, len(emoji))
	for i, e := range emoji {
		out[i] = wireReaction{"emoji", e}
	}
	return out
}

func (s *Server) react(c *chat, m *message, by int64, emoji []string) {
	if m.reactions == nil {
		m.reactions = map[int64][]string{}
	}
	if len(emoji) == 0 {
		delete(m.reactions, by)
	} else {
		m.reactions[by] = slices.Clone(emoji)
	}
	s.Touch()
	s.emitMessage(ChangeReaction, c, m, s.clock.Now())
}

// Start opens the private chat with a bot by its start button: "/start", with
// a deep link's payload when there is one ([features] "Deep linking").
func (u *User) Start(b Bot, payload string) (Message, error) {
	if payload == "" {
		return u.Post(u.With(b), Outgoing{Text: "/start"})
	}
	return u.Post(u.With(b), Outgoing{Text: "/start " + payload})
}

// Block blocks the first bot: it gets my_chat_member ("kicked") and cannot write any
// more.
func (u *User) Block() { u.setBlocked(true) }

// Unblock lets it in again (my_chat_member, "member").
func (u *User) Unblock() { u.setBlocked(false) }

func (u *User) setBlocked(blocked bool) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bots[0]
	c := s.private(b, u.id)
	if c.blocked == blocked {
		return
	}
	c.blocked = blocked
	s.Touch()
	status := map[bool]string{true: "kicked", false: "member"}
	s.membership(b, c, u.account, status[!blocked], status[blocked])
}

type wireMember struct {
	User   Account `json:"user"`
	Status string  `json:"status"`
	Until  *int64  `json:"until_date,omitempty"`
}

// membership sends b a change of its own status in c ([api] my_chat_member).
func (s *Server) membership(b *bot, c *chat, by Account, before, now string) {
	member := func(status string) wireMember {
		m := wireMember{User: b.account, Status: status}
		if status == "kicked" {
			m.Until = new(int64) // forever
		}
		return m
	}
	s.push(b, "my_chat_member", struct {
		Chat wireChat   `json:"chat"`
		From Account    `json:"from"`
		Date int64      `json:"date"`
		Old  wireMember `json:"old_chat_member"`
		New  wireMember `json:"new_chat_member"`
	}{s.wireChat(c), by, s.clock.Now().Unix(), member(before), member(now)})
	s.emit(Change{Kind: ChangeMember, Conversation: c.at, User: &b.account, Status: now})
}
