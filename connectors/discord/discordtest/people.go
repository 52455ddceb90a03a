package discordtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
)

// A User is a user who uses the app. Its methods do what the user does;
// every bot concerned gets its event.
type User struct {
	s       *Server
	id      ID
	account Account
}

// ID returns the user's immutable id.
func (u *User) ID() ID { return u.id }

// Account returns what the platform reports of the user.
func (u *User) Account() Account {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return u.account
}

// Mention returns the text that mentions the user.
func (u *User) Mention() string { return "<@" + u.id.String() + ">" }

// DM returns the user's private channel with the first bot.
func (u *User) DM() ID { return u.With(u.s.Bot()) }

// With returns the user's private channel with b, made when there is none.
func (u *User) With(b Bot) ID {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return u.s.dm(b.ID(), u.id).id
}

// An Outgoing is what a user sends.
type Outgoing struct {
	Text    string `json:"text,omitempty"` // mentions as <@id>
	ReplyTo ID     `json:"reply_to,omitzero"`
	// Quiet answers without mentioning the author of the answered message.
	Quiet bool   `json:"quiet,omitempty"`
	Files []File `json:"files,omitempty"`
	// Extra are further fields of the message object as they are: components
	// of unknown types, stickers, polls. Without MESSAGE_CONTENT bots do not see them.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// A File is what a user or bot attaches, at most 10 MiB.
type File struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data"`
}

// Send writes to the first bot in private. It panics only where Post could
// not fail for a test: never for a text of 1 to 2,000 characters.
func (u *User) Send(text string) Message {
	m, err := u.Post(u.DM(), Outgoing{Text: text})
	if err != nil {
		panic(err)
	}
	return m
}

// Say is Post of a text.
func (u *User) Say(in ID, text string) (Message, error) { return u.Post(in, Outgoing{Text: text}) }

// Reply answers a message and mentions its author, as the app does.
func (u *User) Reply(in, to ID, text string) (Message, error) {
	return u.Post(in, Outgoing{Text: text, ReplyTo: to})
}

// Post sends m to a channel. Errors: NotFound for a channel the user does
// not see, Denied in a locked thread, Invalid for what the app would not send.
func (u *User) Post(in ID, m Outgoing) (Message, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.writable(u, in)
	if err != nil {
		return Message{}, err
	}
	msg, err := s.compose(u, c, m)
	if err != nil {
		return Message{}, err
	}
	c.opened = true
	s.post(c, msg)
	return s.view(c, msg), nil
}

// visible finds a channel that a user sees.
func (s *Server) visible(u *User, in ID) (*channel, error) {
	c := s.channels[in]
	if c == nil {
		return nil, core.Errorf(core.NotFound, "no channel has the id %s", in)
	}
	if c.kind == DM && c.user == u.id || c.people[u.id] {
		return c, nil
	}
	if g := s.guilds[c.guild]; g != nil {
		if _, member := g.members[u.id]; member {
			return c, nil
		}
	}
	return nil, core.Errorf(core.NotFound, "this person does not see channel %s", in)
}

// writable finds a channel that a user may write in.
func (s *Server) writable(u *User, in ID) (*channel, error) {
	c, err := s.visible(u, in)
	switch {
	case err != nil:
		return nil, err
	case c.kind == Forum:
		return nil, core.Errorf(core.Invalid, "a forum has posts, not messages")
	case !s.revive(c):
		return nil, core.Errorf(core.Denied, "the thread is locked")
	}
	return c, nil
}

func (s *Server) compose(u *User, c *channel, m Outgoing) (*message, error) {
	text := strings.TrimSpace(m.Text)
	switch {
	case utf8.RuneCountInString(text) > maxContent:
		return nil, core.Errorf(core.Invalid, "the app sends at most %d characters", maxContent)
	case text == "" && len(m.Files) == 0 && len(m.Extra) == 0:
		return nil, core.Errorf(core.Invalid, "nothing to send")
	case len(m.Files) > maxFiles:
		return nil, core.Errorf(core.Invalid, "at most %d files", maxFiles)
	}
	for key, raw := range m.Extra {
		if !json.Valid(raw) {
			return nil, core.Errorf(core.Invalid, "the extra field %q is no JSON", key)
		}
	}
	msg := &message{ID: s.newID(), Author: u.id, Content: text, At: s.clock.Now(), Extra: maps.Clone(m.Extra)}
	all := everyMention()
	if m.ReplyTo != 0 {
		to := c.index[m.ReplyTo]
		if to == nil {
			return nil, core.Errorf(core.NotFound, "no message %s to answer", m.ReplyTo)
		}
		msg.Type, msg.Ref = typeReply, &reference{Message: to.ID, Channel: c.id, Guild: c.guild}
		all.replied = !m.Quiet
	}
	s.mention(msg, c, all, true)
	for _, f := range m.Files {
		if f.Name == "" || len(f.Data) > maxFile {
			return nil, core.Errorf(core.TooLarge, "a file has a name and at most %d bytes", maxFile)
		}
		msg.Attachments = append(msg.Attachments, s.store(c, f.Name, f.Type, f.Data))
	}
	return msg, nil
}

// PostWebhook writes as a webhook of the channel would: the author's id is the
// webhook's, no account of anyone ([message] note 1).
func (s *Server) PostWebhook(in ID, name, text string) (Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[in]
	if c == nil || c.kind == DM || c.kind == Forum || text == "" || name == "" {
		return Message{}, core.Errorf(core.Invalid, "webhooks write with a name to text channels and threads")
	}
	m := &message{Author: c.id + 1, Webhook: name, Content: text}
	s.mention(m, c, everyMention(), false)
	s.post(c, m)
	return s.view(c, m), nil
}

// own finds a message of the user's.
func (u *User) own(in, id ID) (*channel, *message, error) {
	c, err := u.s.visible(u, in)
	if err != nil {
		return nil, nil, err
	}
	m := c.index[id]
	if m == nil || m.Author != u.id || m.Type != typeDefault && m.Type != typeReply {
		return nil, nil, core.Errorf(core.NotFound, "no message %s of this person", id)
	}
	return c, m, nil
}

// Edit changes the text of a message that the user sent (MESSAGE_UPDATE).
func (u *User) Edit(in, id ID, text string) (Message, error) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := u.own(in, id)
	if err != nil {
		return Message{}, err
	}
	text = strings.TrimSpace(text)
	if text == "" || utf8.RuneCountInString(text) > maxContent {
		return Message{}, core.Errorf(core.Invalid, "this text can't be sent")
	}
	m.Content = text
	s.mention(m, c, everyMention(), true)
	s.edited(c, m)
	return s.view(c, m), nil
}

// Delete takes back a message that the user sent (MESSAGE_DELETE).
func (u *User) Delete(in, id ID) error {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := u.own(in, id)
	if err != nil {
		return err
	}
	s.deleted(c, m)
	return nil
}

// React adds an emoji to a message; Unreact removes it.
func (u *User) React(in, id ID, emoji string) error { return u.react(in, id, emoji, true) }

// Unreact takes an emoji back.
func (u *User) Unreact(in, id ID, emoji string) error { return u.react(in, id, emoji, false) }

func (u *User) react(in, id ID, emoji string, on bool) error {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.visible(u, in)
	if err != nil {
		return err
	}
	m := c.index[id]
	if m == nil || emoji == "" {
		return core.Errorf(core.NotFound, "no message %s, or no emoji", id)
	}
	s.react(c, m, u.id, emoji, on)
	return nil
}

// Type shows that the user writes, for 10 seconds (TYPING_START).
func (u *User) Type(in ID) error {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.writable(u, in)
	if err == nil {
		s.types(c, u.id)
	}
	return err
}

// CloseDMs keeps bots from writing to the user in private (50007); OpenDMs lets them again.
func (u *User) CloseDMs() { u.setDMs(true) }

// OpenDMs lets bots write to the user in private, as at first.
func (u *User) OpenDMs() { u.setDMs(false) }

func (u *User) setDMs(closed bool) {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bots {
		s.dm(b.account.ID, u.id).closed = closed
	}
	s.Touch()
}

func without(list []ID, id ID) []ID {
	return slices.DeleteFunc(slices.Clone(list), func(x ID) bool { return x == id })
}
