package llm

import (
	"fmt"
	"slices"

	"gatehouse/core"
)

// MediaLimits are what a provider takes of pictures and documents in one
// request. Sizes are of Media.Data, in bytes, before base64 makes a third
// more of them. All figures are needed where the kind is taken.
type MediaLimits struct {
	Images, Documents bool // whether the kind is taken at all
	MaxImage          int  // bytes of one picture
	MaxDocument       int  // bytes of one document
	MaxTotal          int  // bytes of all together
	MaxCount          int  // pictures and documents together
}

// A Choice is which media of a request are sent. It is made once for each
// request, by the messages' own memory: ask it with pointers into them.
type Choice struct{ left map[*core.Media]string }

// Choose decides which media of messages l lets through. The newest are
// chosen first, so that a long conversation keeps what it is about.
func (l MediaLimits) Choose(messages []Message) Choice {
	c := Choice{left: map[*core.Media]string{}}
	count, total := 0, 0
	for i := len(messages) - 1; i >= 0; i-- {
		for j := len(messages[i].Blocks) - 1; j >= 0; j-- {
			media := messages[i].Blocks[j].Media
			for k := len(media) - 1; k >= 0; k-- {
				m := &media[k]
				why := l.refuses(m)
				switch {
				case why != "":
				case count == l.MaxCount:
					why = fmt.Sprintf("only the newest %d are shown", l.MaxCount)
				case total+len(m.Data) > l.MaxTotal:
					why = "the newer ones take all the space"
				default:
					count, total = count+1, total+len(m.Data)
					continue
				}
				c.left[m] = why
			}
		}
	}
	return c
}

// refuses explains why m alone is not taken, "" when it is.
func (l MediaLimits) refuses(m *core.Media) string {
	kind, _ := m.Kind()
	switch {
	case kind == "":
		return "it is no picture or document that a model can read"
	case kind == core.ImageMedia && !l.Images:
		return "this model takes no pictures"
	case kind == core.DocumentMedia && !l.Documents:
		return "this model takes no documents"
	case kind == core.ImageMedia && len(m.Data) > l.MaxImage:
		return "it is larger than " + core.ByteSize(l.MaxImage)
	case kind == core.DocumentMedia && len(m.Data) > l.MaxDocument:
		return "it is larger than " + core.ByteSize(l.MaxDocument)
	}
	return ""
}

// LeftOut returns the line of text that represents m where it is not sent; sent is
// true where it is, and there is no line then.
func (c Choice) LeftOut(m *core.Media) (line string, sent bool) {
	why, left := c.left[m]
	if !left {
		return "", true
	}
	return m.LeftOut(why), false
}

// HasMedia reports whether r holds any picture or document.
func (r *Request) HasMedia() bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool {
		return slices.ContainsFunc(m.Blocks, func(b core.Block) bool { return len(b.Media) > 0 })
	})
}

// NewestMedia returns the names of the pictures (images) or of the documents that came
// after the last answer.
func (r *Request) NewestMedia(images bool) (names []string) {
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role != "assistant"; i-- {
		for _, b := range r.Messages[i].Blocks {
			for k := range b.Media {
				if kind, _ := b.Media[k].Kind(); (kind == core.ImageMedia) == images {
					names = append(names, b.Media[k].Name)
				}
			}
		}
	}
	return names
}
