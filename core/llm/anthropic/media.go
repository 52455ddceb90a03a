package anthropic

import (
	"encoding/base64"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// What the API takes of pictures and documents in one request. Sources:
// https://platform.claude.com/docs/en/build-with-claude/vision (5 MB for a
// picture in base64; more than 20 of them may be 2,000 pixels wide only, where
// up to 20 may be 8,000) and …/pdf-support (PDF within a request of 32 MB in
// all). A document's pages and a picture's pixels are not counted here: where
// the API refuses them, the request is repeated without media.
const (
	maxImage = 5 << 20 / 4 * 3  // 5 MB in base64
	maxTotal = 24 << 20 / 4 * 3 // 24 MB in base64, so that 8 MB stay for the rest
	maxMedia = 20
)

// media returns what this request's model takes.
func (r *reply) media() llm.MediaLimits {
	sees := !r.blind && sees(r.c.link.Present())
	return llm.MediaLimits{Images: sees, Documents: sees, MaxImage: maxImage, MaxDocument: maxTotal, MaxTotal: maxTotal, MaxCount: maxMedia}
}

// sees reports whether the model takes pictures: all since Claude 3 do.
func sees(model string) bool {
	for _, old := range [...]string{"claude-2", "claude-instant", "claude-1"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}

// shown returns b's media as blocks, each as itself or as the line that explains why not.
func (h *history) shown(b *core.Block) []block {
	var out []block
	for i := range b.Media {
		m := &b.Media[i]
		line, sent := h.media.LeftOut(m)
		if !sent {
			out = append(out, textBlock(line))
			continue
		}
		data := base64.StdEncoding.EncodeToString(m.Data)
		if kind, mime := m.Kind(); kind == core.ImageMedia {
			out = append(out, block{kind: "image", mime: mime, data: data})
			continue
		}
		out = append(out, block{kind: "document", name: m.Name, data: data})
	}
	return out
}
