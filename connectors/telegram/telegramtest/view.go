package telegramtest

import (
	"cmp"
	"slices"
	"time"

	"gatehouse/core"
)

// A Message is one message as a user sees it in the chat.
type Message struct {
	Conversation
	ID        int        `json:"id"`
	Thread    int        `json:"thread,omitempty"`
	From      Account    `json:"from"`
	At        time.Time  `json:"at"` // when it became visible, exactly
	EditedAt  time.Time  `json:"edited_at,omitzero"`
	Edits     int        `json:"edits,omitempty"`
	Text      string     `json:"text,omitempty"` // or the caption
	Entities  []Entity   `json:"entities,omitempty"`
	Buttons   [][]Button `json:"buttons,omitempty"`
	ReplyTo   int        `json:"reply_to,omitempty"`
	ReplyText string     `json:"reply_text,omitempty"` // of the answered message, cut to 200 bytes
	ReplyName string     `json:"reply_name,omitempty"`
	Quote     string     `json:"quote,omitempty"`
	File      string     `json:"file,omitempty"` // kind and name of an attachment
	Forward   string     `json:"forward,omitempty"`
	Service   string     `json:"service,omitempty"` // "Ada joined the group"
	Reactions []Reaction `json:"reactions,omitempty"`
}

// FromBot reports whether a bot wrote it.
func (m Message) FromBot() bool { return m.From.IsBot }

// A Reaction is what one account put on a message.
type Reaction struct {
	By    int64    `json:"by"`
	Emoji []string `json:"emoji"`
}

// A Draft is a message that a bot is still writing.
type Draft struct {
	ID       int64     `json:"id"`
	Thread   int       `json:"thread,omitempty"`
	Text     string    `json:"text"` // "" is a placeholder
	Entities []Entity  `json:"entities,omitempty"`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until"`
}

// Typing is a bot's status in a chat; an empty Action is its end.
type Typing struct {
	Bot    int64     `json:"bot"`
	Action string    `json:"action,omitempty"`
	Thread int       `json:"thread,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// A Screen is all that a user sees of a chat now.
type Screen struct {
	Messages []Message `json:"messages"`
	Drafts   []Draft   `json:"drafts,omitempty"`
	Typing   []Typing  `json:"typing,omitempty"`
}

func (d *draft) view() Draft {
	return Draft{ID: d.id, Thread: d.thread, Text: d.text, Entities: d.entities, At: d.at, Until: d.at.Add(draftLife)}
}

// view copies m for users; the slices it shares are never changed in place.
func (s *Server) view(c *chat, m *message) Message {
	w := &m.wire
	v := Message{
		Conversation: c.at, ID: w.MessageID, Thread: w.ThreadID, At: m.shown, EditedAt: m.edited, Edits: m.edits,
		Text: w.Text, Entities: w.Entities, Service: m.service,
	}
	if w.From != nil {
		v.From = *w.From
	}
	if w.SenderChat != nil {
		v.From.FirstName, v.From.LastName = w.SenderChat.Title, ""
	}
	if w.Caption != "" {
		v.Text, v.Entities = w.Caption, w.CaptionEntities
	}
	if w.ReplyMarkup != nil {
		v.Buttons = w.ReplyMarkup.Rows
	}
	if w.ReplyTo != nil && w.ReplyTo.TopicCreated == nil {
		v.ReplyTo, v.ReplyText = w.ReplyTo.MessageID, cutText(cmp.Or(w.ReplyTo.Text, w.ReplyTo.Caption), 200)
		if w.ReplyTo.From != nil {
			v.ReplyName = w.ReplyTo.From.Name()
		}
	}
	if w.Quote != nil {
		v.Quote = w.Quote.Text
	}
	if w.ForwardFrom != nil {
		v.Forward = w.ForwardFrom.Name()
	}
	v.File = fileWords(w)
	for by, emoji := range m.reactions {
		v.Reactions = append(v.Reactions, Reaction{by, emoji})
	}
	core.Sort(v.Reactions, func(a, b Reaction) int { return cmp.Compare(a.By, b.By) })
	return v
}

func fileWords(w *wireMessage) string {
	switch {
	case len(w.Photo) > 0:
		return "photo"
	case w.Document != nil:
		return "document " + w.Document.Name
	case w.Voice != nil:
		return "voice message"
	case w.VideoNote != nil:
		return "video note"
	case w.Audio != nil:
		return "audio " + w.Audio.Name
	case w.Video != nil:
		return "video " + w.Video.Name
	}
	for name := range w.extra {
		if w.Text == "" {
			return name
		}
	}
	return ""
}

func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// History returns the chat as a user sees it, oldest first; at most 500 messages.
func (s *Server) History(in Conversation) []Message { return s.Screen(in).Messages }

// Screen returns the whole chat window: history, drafts and typing, as of now.
func (s *Server) Screen(in Conversation) Screen {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[in]
	if c == nil {
		return Screen{Messages: []Message{}}
	}
	out := Screen{Messages: make([]Message, len(c.messages))}
	for i, m := range c.messages {
		out.Messages[i] = s.view(c, m)
	}
	now := s.clock.Now()
	for _, d := range c.drafts {
		if now.Sub(d.at) < draftLife {
			out.Drafts = append(out.Drafts, d.view())
		}
	}
	for _, t := range c.typing {
		if now.Before(t.Until) {
			out.Typing = append(out.Typing, t)
		}
	}
	return out
}

// A Chat describes a conversation.
type Chat struct {
	Conversation
	Kind    string         `json:"kind"` // private, group, supergroup
	Title   string         `json:"title,omitempty"`
	Forum   bool           `json:"forum,omitempty"`
	Topics  map[int]string `json:"topics,omitempty"`
	Members []int64        `json:"members,omitempty"` // users and bots present
	Blocked bool           `json:"blocked,omitempty"`
}

// Chats returns all conversations, in order of their ids.
func (s *Server) Chats() []Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Chat, 0, len(s.chats))
	for at, c := range s.chats {
		v := Chat{Conversation: at, Kind: c.kind, Title: c.title, Forum: c.forum, Blocked: c.blocked}
		for id, status := range c.members {
			if present(status) && c.migrated == 0 {
				v.Members = append(v.Members, id)
			}
		}
		slices.Sort(v.Members)
		if c.forum {
			v.Topics = map[int]string{}
			for id, name := range c.topics {
				v.Topics[id] = name
			}
		}
		out = append(out, v)
	}
	core.Sort(out, func(a, b Chat) int {
		return cmp.Or(cmp.Compare(a.Bot, b.Bot), cmp.Compare(a.Chat, b.Chat))
	})
	return out
}
