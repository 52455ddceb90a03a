package openai

import (
	"encoding/base64"
	"slices"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// What the API takes of pictures and documents in one request. Sources:
// https://platform.openai.com/docs/guides/images-vision (20 MB for a picture,
// 500 pictures, 50 MB in all) and …/guides/pdf-files (50 MB in all). Both are
// taken for base64, so that a server that counts either way is content.
const (
	maxImage = 20 << 20 / 4 * 3
	maxTotal = 48 << 20 / 4 * 3
	maxMedia = 500
)

// documented are the servers that describe file parts; others refuse them, or
// worse, leave them out without a word.
var documented = []string{"api.openai.com", "openrouter.ai"}

// media returns what the model takes, as far as is known from its server's refusals;
// nothing where one of this request's media was refused.
func (r *reply) media() llm.MediaLimits {
	if r.blind {
		return llm.MediaLimits{}
	}
	return r.c.media()
}

func (c *Client) media() llm.MediaLimits {
	files := c.documents || slices.Contains(documented, c.base.Hostname())
	return llm.MediaLimits{Images: !c.dialect.noImages.Load(), Documents: files && !c.dialect.noFiles.Load(),
		MaxImage: maxImage, MaxDocument: maxTotal, MaxTotal: maxTotal, MaxCount: maxMedia}
}

// learnMedia looks whether a refusal is about media, and leaves out what was
// refused: for the client's life where the model takes none of the kind, for
// this request where it is about one of them. Servers say it like this:
// Ollama "this model is missing data required for image input", vLLM "At most
// 0 image(s) may be provided", "… is not a multimodal model", llama.cpp "image
// input is not supported", DeepSeek "unknown variant `image_url`", OpenRouter
// (with 404) "No endpoints found that support image input".
func (r *reply) learnMedia(status int, text string) bool {
	if r.blind || status < 400 || status == 401 || status == 429 || !r.req.HasMedia() {
		return false
	}
	files := provider.Says(text, "pdf", "file_data", "'file'", `"file"`, "`file`", "file input", "file is")
	if !files && !provider.Says(text, "image", "multimodal", "vision") {
		return false
	}
	never := provider.Says(text, "missing data required", "at most 0 ", "not support", "n't support", "unknown variant",
		"no endpoints found", "not a multimodal", "unsupported", "supported values are", "only supported by")
	switch d := &r.c.dialect; {
	case never && files:
		r.Refused(r.req, false, true)
		return d.noFiles.CompareAndSwap(false, true)
	case never:
		r.Refused(r.req, true, false)
		return d.noImages.CompareAndSwap(false, true)
	}
	r.blind = true
	r.Refused(r.req, true, r.c.media().Documents)
	return true
}

// A part is one piece of a message's content.
type part struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
	File  *file     `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type file struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// content is what a message states; an encoder writes it.
type content []part

// text adds words, to the last part where that is text too.
func (c *content) text(s string) {
	if s == "" {
		return
	}
	if n := len(*c); n > 0 && (*c)[n-1].Type == "text" {
		(*c)[n-1].Text += "\n\n" + s
		return
	}
	*c = append(*c, part{Type: "text", Text: s})
}

// media adds what b shows, each as itself or as the line that explains why not.
func (c *content) media(choice llm.Choice, b *core.Block) {
	for i := range b.Media {
		m := &b.Media[i]
		line, sent := choice.LeftOut(m)
		if !sent {
			c.text(line)
			continue
		}
		kind, mime := m.Kind()
		url := "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
		if kind == core.ImageMedia {
			*c = append(*c, part{Type: "image_url", Image: &imageURL{url}})
			continue
		}
		name := m.Name
		if name == "" {
			name = "document.pdf" // the API wants one
		}
		*c = append(*c, part{Type: "file", File: &file{name, url}})
	}
}
