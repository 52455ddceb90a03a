package lines

import (
	"hash/crc32"
	"slices"

	"gatehouse/core"
)

// An Author is who wrote a user's message in a chat. It is a member of the message's
// line ("author"), for users who read the conversation; models and Claude Code do not
// read it.
type Author struct {
	Name     string     `json:"name,omitempty"`
	Platform string     `json:"platform,omitempty"`
	Trust    core.Trust `json:"trust,omitempty"`
	Place    string     `json:"place,omitempty"` // the group's name, "" in a direct message
	Said     []Said     `json:"said,omitempty"`  // what differs from the blocks
}

// A Said is what a user wrote, where the model reads a block that states more.
type Said struct {
	Sum   uint32      `json:"sum"` // of the block's text
	Text  string      `json:"text"`
	Quote *core.Quote `json:"quote,omitempty"` // what it refers to
}

// Add records that the model reads a block with this text where the author wrote text.
func (a *Author) Add(block, text string, quote *core.Quote) {
	if block != text || quote != nil {
		a.Said = append(a.Said, Said{Sum: crc32.ChecksumIEEE([]byte(block)), Text: text, Quote: quote})
	}
}

// memory returns approximately how much memory a needs, in bytes.
func (a *Author) memory() int {
	if a == nil {
		return 0
	}
	n := 128 + len(a.Name) + len(a.Place)
	for i := range a.Said {
		n += 64 + len(a.Said[i].Text)
		if q := a.Said[i].Quote; q != nil {
			n += 64 + len(q.Name) + len(q.Text)
		}
	}
	return n
}

// A Shown is a block as users read it: a text is what its author wrote.
type Shown struct {
	core.Block
	Quote *core.Quote // what the text refers to; nil without
}

// Shown returns m as users read it, and who wrote it. The author of an assistant's
// message, and of one whose author is not recorded, is empty. A line that records none
// is read by its framing; group reports whether it is of a group's conversation, where
// the framing names the sender.
func (m *Message) Shown(group bool) (Author, []Shown) {
	var a Author
	if m.Author != nil {
		a = *m.Author
	}
	blocks := make([]Shown, len(m.Blocks))
	for i := range m.Blocks {
		blocks[i] = Shown{Block: m.Blocks[i]}
		if m.Role != "user" || m.Blocks[i].Type != "text" {
			continue
		}
		text := m.Blocks[i].Text
		if m.Author != nil {
			sum := crc32.ChecksumIEEE([]byte(text))
			if k := slices.IndexFunc(a.Said, func(s Said) bool { return s.Sum == sum }); k >= 0 {
				blocks[i].Text, blocks[i].Quote = a.Said[k].Text, a.Said[k].Quote
			}
		} else if f, ok := ParseFraming(text, group); ok {
			blocks[i].Text, blocks[i].Quote = f.Text, f.Quote
			if f.Name != "" {
				a.Name, a.Trust = f.Name, f.Trust
			}
		}
	}
	a.Said = nil
	return a, blocks
}

// ShownText returns the text that the author of m wrote, or the assistant, without
// thinking and tools.
func (m *Message) ShownText() string {
	if m.Role != "user" || m.Summary {
		return m.Text()
	}
	_, blocks := m.Shown(true)
	shown := Message{Blocks: make([]core.Block, len(blocks))}
	for i := range blocks {
		shown.Blocks[i] = blocks[i].Block
	}
	return shown.Text()
}
