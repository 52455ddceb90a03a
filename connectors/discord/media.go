package discord

import (
	"strings"

	"gatehouse/core"
)

// voiceMessage is the flag IS_VOICE_MESSAGE (Message Flags).
const voiceMessage = 1 << 13

// attached are the message's files, or those of the message it forwards.
func (m *message) attached() []attachment {
	if len(m.Attachments.V) == 0 && len(m.Snapshots.V) > 0 {
		return m.Snapshots.V[0].Message.Attachments.V
	}
	return m.Attachments.V
}

// files are what lies with the platform and can be fetched: at most ten, as
// many as a message holds.
func (m *message) files() []core.File {
	var out []core.File
	for _, a := range m.attached() {
		if len(out) == 10 {
			break
		}
		if !isID(a.ID) {
			continue
		}
		out = append(out, core.File{Name: a.Name, Type: a.Type, Size: max(a.Size, 0), Voice: m.Flags&voiceMessage != 0,
			Ref: m.Channel + "/" + m.ID + "/" + a.ID + " " + a.URL})
	}
	return out
}

// shown says in words what needs no file to be understood; "" for none.
func (m *message) shown() string {
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

// kind names content that we can't read; "" for none.
func (m *message) kind() string {
	switch {
	case len(m.attached()) > 0 && len(m.files()) == 0:
		return "document"
	case m.Content == "" && len(m.attached()) == 0 && m.shown() == "" && len(m.Snapshots.V) == 0 && (bool(m.Embeds) || bool(m.Components)):
		return "message of a kind unknown here"
	case m.Content == "" && len(m.Snapshots.V) > 0 && m.Snapshots.V[0].Message.Content == "" && len(m.attached()) == 0:
		return "forwarded message"
	}
	return ""
}

// quoted is what m is about: that it is forwarded (the platform does not say
// from whom), or the words that it answers. The bot's own stand in the
// conversation already.
func (m *message) quoted(us string) *core.Quote {
	if len(m.Snapshots.V) > 0 && m.Content == "" {
		return &core.Quote{Forwarded: true}
	}
	r := m.Referenced.V
	if m.Type != typeReply || r == nil || r.Author == nil || r.Author.ID == us || r.Content == "" {
		return nil
	}
	return &core.Quote{Name: r.Author.peer().Name, Text: core.CutRunes(r.Content, core.MaxQuote)}
}
