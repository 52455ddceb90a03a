package discordtest

import (
	"cmp"
	"encoding/json"
	"time"

	"gatehouse/core"
)

// A Message is one message as users see it in the channel.
type Message struct {
	ID          ID           `json:"id"`
	Channel     ID           `json:"channel"`
	Guild       ID           `json:"guild,omitzero"`
	Type        int          `json:"type,omitempty"`
	From        Account      `json:"from"`
	Webhook     bool         `json:"webhook,omitempty"`
	At          time.Time    `json:"at"` // when it became visible, exactly
	EditedAt    time.Time    `json:"edited_at,omitzero"`
	Edits       int          `json:"edits,omitempty"`
	Text        string       `json:"text,omitempty"`
	Mentions    []ID         `json:"mentions,omitempty"` // who was notified
	Everyone    bool         `json:"everyone,omitempty"`
	Buttons     [][]Button   `json:"buttons,omitempty"`
	ReplyTo     ID           `json:"reply_to,omitzero"`
	ReplyText   string       `json:"reply_text,omitempty"` // of the answered message, cut to 200 bytes
	ReplyName   string       `json:"reply_name,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	Embeds      int          `json:"embeds,omitempty"` // how many
	Reactions   []Reaction   `json:"reactions,omitempty"`
	Flags       int          `json:"flags,omitempty"`
	Nonce       string       `json:"nonce,omitempty"` // as JSON
	Thinking    bool         `json:"thinking,omitempty"`
	OnlyFor     ID           `json:"only_for,omitzero"` // ephemeral
	Interaction ID           `json:"interaction,omitzero"`
}

// FromBot reports whether a bot or webhook wrote it.
func (m Message) FromBot() bool { return m.From.Bot }

// Typing is someone who writes until a time, or until their message.
type Typing struct {
	By    ID        `json:"by"`
	Until time.Time `json:"until"`
}

// A Screen is all that is to see in a channel now.
type Screen struct {
	Messages []Message `json:"messages"`
	Typing   []Typing  `json:"typing,omitempty"`
}

// A Channel is a channel, thread, post or DM in a list.
type Channel struct {
	ID       ID     `json:"id"`
	Type     int    `json:"type"`
	Guild    ID     `json:"guild,omitzero"`
	Parent   ID     `json:"parent,omitzero"`
	Name     string `json:"name"`
	Bot      ID     `json:"bot,omitzero"`  // DM
	User     ID     `json:"user,omitzero"` // DM
	Archived bool   `json:"archived,omitempty"`
}

// view copies m for users; the slices it shares are never changed in place.
func (s *Server) view(c *channel, m *message) Message {
	v := Message{ID: m.ID, Channel: c.id, Guild: c.guild, Type: m.Type, From: s.account(m.Author), At: m.At, EditedAt: m.Edited, Edits: m.Edits,
		Text: m.Content, Mentions: m.Mentions, Everyone: m.Everyone, Buttons: buttons(m.Components), Attachments: m.Attachments, Reactions: m.Reactions,
		Flags: m.Flags, Nonce: string(m.Nonce), Thinking: m.Flags&Loading != 0, OnlyFor: m.To}
	if m.Webhook != "" {
		v.From, v.Webhook = Account{ID: m.Author, Name: m.Webhook, Username: m.Webhook, Bot: true}, true
	}
	if m.Source != nil {
		v.Interaction = m.Source.ID
	}
	if len(m.Embeds) > 0 {
		var list []json.RawMessage
		json.Unmarshal(m.Embeds, &list)
		v.Embeds = len(list)
	}
	if m.Type == typeReply && m.Ref != nil {
		v.ReplyTo = m.Ref.Message
		if to := c.index[m.Ref.Message]; to != nil {
			v.ReplyText, v.ReplyName = cutText(to.Content, 200), s.account(to.Author).Name
		}
	}
	return v
}

func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most] + "…"
}

// History returns what is in a channel, oldest first; at most 1,000 messages.
// It includes ephemeral messages, with their recipient.
func (s *Server) History(in ID) []Message { return s.Screen(in).Messages }

// Screen returns what is in a channel and who writes there.
func (s *Server) Screen(in ID) Screen {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Screen{Messages: []Message{}}
	c := s.channels[in]
	if c == nil {
		return out
	}
	for _, m := range c.messages {
		out.Messages = append(out.Messages, s.view(c, m))
	}
	now := s.clock.Now()
	for id, until := range c.typing {
		if now.Before(until) {
			out.Typing = append(out.Typing, Typing{id, until})
		}
	}
	core.Sort(out.Typing, func(a, b Typing) int { return cmp.Compare(a.By, b.By) })
	return out
}

// Message returns one message; false when it is not there (any more).
func (s *Server) Message(in, id ID) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[in]
	if c == nil || c.index[id] == nil {
		return Message{}, false
	}
	return s.view(c, c.index[id]), true
}

// Channels returns all channels, threads and DMs, oldest first.
func (s *Server) Channels() []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Channel, 0, len(s.channels))
	for _, c := range s.channels {
		out = append(out, Channel{c.id, c.kind, c.guild, c.parent, c.name, c.bot, c.user, c.archived})
	}
	core.Sort(out, func(a, b Channel) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// A GuildView is a guild in a list.
type GuildView struct {
	ID      ID     `json:"id"`
	Name    string `json:"name"`
	Owner   ID     `json:"owner"`
	Members []ID   `json:"members"`
}

// Guilds returns all guilds, oldest first.
func (s *Server) Guilds() []GuildView {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]GuildView, 0, len(s.guilds))
	for _, g := range s.guilds {
		v := GuildView{ID: g.id, Name: g.name, Owner: g.owner}
		for id := range g.members {
			v.Members = append(v.Members, id)
		}
		core.Sort(v.Members, cmp.Compare)
		out = append(out, v)
	}
	core.Sort(out, func(a, b GuildView) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
