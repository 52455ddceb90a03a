package lines

import (
	"encoding/base64"

	"gatehouse/core"
)

// Bounds of media in transcripts. A picture in a line is what Anthropic's API
// takes (5 MB in base64), so that anyone who resumes the session can send it
// again; a line's media together stay well below the longest line that is read.
const (
	maxPicture   = 5 << 20 / 4 * 3
	maxLineMedia = 9 << 20
	// tailMedia bounds the media of one conversation in memory; older ones are
	// a line of text there.
	tailMedia = 8 << 20
)

// What media take of a model's window: a picture of the usual size about 1,600
// tokens, a page of a document up to 3,000
// (https://platform.claude.com/docs/en/build-with-claude/vision, …/pdf-support).
// A page is taken for 50 KB of its file.
const (
	pictureTokens = 1600
	pageTokens    = 3000
	pageBytes     = 50 << 10
)

func mediaSize(m *core.Media) int {
	if kind, _ := m.Kind(); kind == core.DocumentMedia {
		return (1 + len(m.Data)/pageBytes) * pageTokens * BytesPerToken
	}
	return pictureTokens * BytesPerToken
}

func (m *Message) mediaBytes() (n int) {
	for i := range m.Blocks {
		for k := range m.Blocks[i].Media {
			n += len(m.Blocks[i].Media[k].Data)
		}
	}
	return n
}

type (
	wireSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	wireMedium struct {
		Type   string     `json:"type"`
		Source wireSource `json:"source"`
		Title  string     `json:"title,omitempty"` // of a document
	}
)

// wireMedia returns media as blocks of a line. What no model takes, and what is
// too large for a line, is a line of text.
func wireMedia(media []core.Media) (out []any) {
	total := 0
	for i := range media {
		m := &media[i]
		kind, mime := m.Kind()
		why := ""
		switch {
		case kind == "":
			why = "it is no picture or document that a model can read"
		case kind == core.ImageMedia && len(m.Data) > maxPicture:
			why = "it is larger than " + core.ByteSize(maxPicture)
		case total+len(m.Data) > maxLineMedia:
			why = "one message holds at most " + core.ByteSize(maxLineMedia)
		}
		if why != "" {
			out = append(out, wireText{"text", m.LeftOut(why)})
			continue
		}
		total += len(m.Data)
		w := wireMedium{Type: kind, Source: wireSource{"base64", mime, base64.StdEncoding.EncodeToString(m.Data)}}
		if kind == core.DocumentMedia {
			w.Title = m.Name
		}
		out = append(out, w)
	}
	return out
}

// media returns what an image or document block shows; false for a source that is
// not in the line, and for broken ones.
func (r *wireBlock) media() (core.Media, bool) {
	if r.Source == nil || r.Source.Type != "base64" {
		return core.Media{}, false
	}
	data, err := base64.StdEncoding.DecodeString(r.Source.Data)
	m := core.Media{Type: r.Source.MediaType, Name: core.CleanName(r.Title), Data: data}
	if kind, _ := m.Kind(); err != nil || kind == "" {
		return core.Media{}, false
	}
	return m, true
}

// shed takes media out of the older messages, so that all together hold at
// most limit bytes of them. Blocks are copied before they change.
func shed(messages []Message, limit int) {
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if limit -= m.mediaBytes(); limit >= 0 || m.mediaBytes() == 0 {
			continue
		}
		limit = 0
		var blocks []core.Block
		for _, b := range m.Blocks {
			for k := range b.Media {
				line := b.Media[k].LeftOut("it is from earlier in the conversation")
				switch {
				case b.Type == "media":
					blocks = append(blocks, core.Block{Type: "text", Text: line})
				case b.Text == "":
					b.Text = line
				default:
					b.Text += "\n" + line
				}
			}
			if b.Media = nil; b.Type != "media" {
				blocks = append(blocks, b)
			}
		}
		m.Blocks = blocks
	}
}
