package wire

import (
	"errors"
	"strings"

	"gatehouse/core"
)

// voiceMessage is the flag IS_VOICE_MESSAGE (Message Flags).
const voiceMessage = 1 << 13

// Forwards reports whether m only forwards a message, whose author the platform does not
// name: a forward has no text of its sender.
func (m *Message) Forwards() bool { return m.Content == "" && len(m.Snapshots.V) > 0 }

// Text returns the text of m, or of the message that it forwards.
func (m *Message) Text() string {
	if m.Forwards() {
		return m.Snapshots.V[0].Message.Content
	}
	return m.Content
}

// Attached returns the message's files, or those of the message that it forwards.
func (m *Message) Attached() []Attachment {
	if len(m.Attachments.V) == 0 && len(m.Snapshots.V) > 0 {
		return m.Snapshots.V[0].Message.Attachments.V
	}
	return m.Attachments.V
}

// Files returns the files that can be fetched, at most ten (the limit of a message).
func (m *Message) Files() []core.File {
	var out []core.File
	for _, a := range m.Attached() {
		if len(out) == 10 {
			break
		}
		if !IsID(a.ID) {
			continue
		}
		out = append(out, core.File{Name: a.Name, Type: a.Type, Size: max(a.Size, 0), Voice: m.Flags&voiceMessage != 0,
			Ref: m.Channel + "/" + m.ID + "/" + a.ID + " " + a.URL})
	}
	return out
}

// Shown returns stickers and polls as text, or "".
func (m *Message) Shown() string {
	var b strings.Builder
	for _, s := range m.Stickers.V {
		b.WriteString("\n\n[sticker " + core.CutRunes(core.CleanName(s.Name), 100) + "]")
	}
	if p := m.Poll.V; p != nil && p.Question.Text != "" {
		b.WriteString("\n\n[poll: " + core.CutRunes(core.CleanName(p.Question.Text), 300))
		for _, a := range p.Answers {
			b.WriteString("; " + core.CutRunes(core.CleanName(a.Media.Text), 100))
		}
		b.WriteString("]")
	}
	return b.String()
}

// Kind names content that cannot be read here, or returns "".
func (m *Message) Kind() string {
	switch {
	case len(m.Attached()) > 0 && len(m.Files()) == 0:
		return "document"
	case m.Content == "" && len(m.Attached()) == 0 && m.Shown() == "" && len(m.Snapshots.V) == 0 && (bool(m.Embeds) || bool(m.Components)):
		return "message of a kind unknown here"
	case m.Forwards() && m.Text() == "" && len(m.Attached()) == 0:
		return "forwarded message"
	}
	return ""
}

// Quoted returns what m refers to: that it is forwarded (the platform does not name
// the author), or the message that it replies to. It returns nil for a reply to
// us, the bot's own id, whose messages are in the conversation already.
func (m *Message) Quoted(us string) *core.Quote {
	if m.Forwards() {
		return &core.Quote{Forwarded: true}
	}
	r := m.refers(us)
	if r == nil {
		return nil
	}
	text := r.Text() + r.Shown()
	for _, f := range r.Files() {
		text += "\n\n[a file: " + core.CutRunes(core.CleanName(f.Name), 200) + "]"
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	q := &core.Quote{Text: core.CutRunes(text, core.MaxQuote)}
	if !r.Forwards() {
		q.Name = r.Author.Peer().Name
	}
	return q
}

// refers returns the message that m replies to, unless it is ours.
func (m *Message) refers(us string) *Message {
	r := m.Referenced.V
	if m.Type != TypeReply || r == nil || r.Author == nil || r.Author.ID == us {
		return nil
	}
	return r
}

// Referred returns the files of the message that m replies to, which m's sender sees in the
// same channel. They are not theirs, so that a voice message is not taken for what they
// said. There are none of a reply to us, nor, in a private chat, of one to the sender's own
// message: the conversation has them.
func (m *Message) Referred(us string, private bool) []core.File {
	r := m.refers(us)
	if r == nil || private && m.Author != nil && r.Author.ID == m.Author.ID || r.Channel != m.Channel || !IsID(r.ID) {
		return nil
	}
	files := r.Files()
	for i := range files {
		files[i].Quoted, files[i].Voice = true, false
	}
	return files
}

// Message types written by users (Message Types); all others are events that the
// platform shows as messages.
const (
	TypeDefault = 0
	TypeReply   = 19
)

// Check returns an error if m has no id, channel or author.
func (m *Message) Check() error {
	switch {
	case !IsID(m.ID):
		return errors.New("a message without a readable id")
	case !IsID(m.Channel):
		return errors.New("a message without a readable channel")
	case m.Author == nil || m.Author.ID == "":
		return errors.New("a message without an author")
	}
	return nil
}

// Sender returns who wrote m. A webhook's message is marked Shared.
func (m *Message) Sender() core.Peer {
	p := m.Author.Peer()
	if m.Webhook != "" {
		p.Shared = true
	}
	return p
}

// RepliesTo reports whether m is a reply to a message of the user id.
func (m *Message) RepliesTo(id string) bool {
	r := m.Referenced.V
	return m.Type == TypeReply && r != nil && r.Author != nil && r.Author.ID == id
}
