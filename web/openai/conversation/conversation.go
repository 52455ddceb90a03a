// Package conversation collects the messages that a request of OpenAI's API
// contains: system prompt, earlier messages, and the one to be answered.
package conversation

import (
	"encoding/base64"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/openai/refusal"
)

// Bounds of a conversation.
const (
	MaxMessages = 2048
	MaxText     = 100 << 10 // bytes of one message's text, and of all system messages together
	maxPictures = 20
	maxPicture  = 5 << 20  // bytes of one, decoded
	maxSize     = 10 << 20 // bytes of all, as Weigh counts them: the limit of a body
	partSize    = 64       // bytes that are counted for a part in addition to its content
)

// Begins is in front of a conversation that the model began: providers
// want a user's text first.
const Begins = "(The conversation begins with your words.)"

// A Conversation is messages as they are read. Param names the field that holds
// them, in errors.
type Conversation struct {
	Param    string
	system   []string
	said     []core.Said
	pictures int
	size     int
}

// Add appends a message of role system, developer, user or assistant; at is its
// name in errors. Blank system messages are left out.
func (c *Conversation) Add(at, role, text string, media []core.Media) error {
	if len(text) > MaxText {
		return refusal.New(web.Invalid, "string_above_max_length", at+".content", fmt.Sprintf("Invalid '%s.content': over %d bytes of text.", at, MaxText))
	}
	switch role {
	case "system", "developer":
		if len(media) > 0 {
			return refusal.Unsupported(at+".content", "'%s' holds a picture, which a "+role+" message cannot")
		}
		if strings.TrimSpace(text) != "" {
			c.system = append(c.system, text)
		}
	case "user", "assistant":
		c.said = append(c.said, core.Said{Role: role, Text: text, Media: media})
	default:
		return refusal.New(web.Invalid, "invalid_value", at+".role", fmt.Sprintf("Invalid value for '%s.role': supported are 'system', 'developer', 'user' and 'assistant'.", at))
	}
	return nil
}

// Weigh counts the content of a part, and refuses what makes the whole too large: what
// is repeated of stored messages is in no body.
func (c *Conversation) Weigh(bytes int) error {
	if c.size += bytes + partSize; c.size > maxSize {
		return refusal.New(web.Invalid, "string_above_max_length", c.Param, fmt.Sprintf("Invalid '%s': the conversation is over %s, with what it repeats of stored messages.", c.Param, core.ByteSize(maxSize)))
	}
	return nil
}

// System returns the system messages as one text.
func (c *Conversation) System() (string, error) {
	text := strings.Join(c.system, "\n\n")
	if len(text) > MaxText {
		return "", refusal.New(web.Invalid, "string_above_max_length", c.Param, fmt.Sprintf("Invalid '%s': over %d bytes in system messages.", c.Param, MaxText))
	}
	return text, nil
}

// Said returns the messages before the last one, and that one, which is the
// user's and not empty. Empty messages before it are left out.
func (c *Conversation) Said() (before []core.Said, last core.Said, err error) {
	end := len(c.said) - 1
	if end < 0 || c.said[end].Role != "user" || Empty(&c.said[end]) {
		return nil, last, refusal.New(web.Invalid, "invalid_value", c.Param, fmt.Sprintf("Invalid '%s': the last one must be of role 'user' and have content.", c.Param))
	}
	for i := range c.said[:end] {
		m := &c.said[i]
		if Empty(m) {
			continue
		}
		if len(before) == 0 && m.Role == "assistant" {
			before = append(before, core.Said{Role: "user", Text: Begins})
		}
		before = append(before, *m)
	}
	return before, c.said[end], nil
}

// Empty reports whether m has neither text nor media.
func Empty(m *core.Said) bool { return strings.TrimSpace(m.Text) == "" && len(m.Media) == 0 }

// Picture reads a data URL (RFC 2397); at is its name in errors. An address
// elsewhere is not fetched.
func (c *Conversation) Picture(at, url string) (core.Media, error) {
	head, data, ok := strings.Cut(url, ",")
	if !ok || !strings.HasPrefix(strings.ToLower(head), "data:") || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return core.Media{}, refusal.New(web.UnsupportedField, "invalid_image_url", at, fmt.Sprintf("Invalid '%s': a picture must be a data URL in base64; addresses are not fetched.", at))
	}
	if c.pictures++; c.pictures > maxPictures {
		return core.Media{}, refusal.New(web.Invalid, "invalid_value", at, fmt.Sprintf("Invalid '%s': at most %d pictures.", c.Param, maxPictures))
	}
	if base64.StdEncoding.DecodedLen(len(data)) > maxPicture+2 {
		return core.Media{}, refusal.New(web.Invalid, "image_too_large", at, fmt.Sprintf("Invalid '%s': a picture is at most %s.", at, core.ByteSize(maxPicture)))
	}
	bytes, err := base64.StdEncoding.DecodeString(data)
	m := core.Media{Data: bytes}
	kind, mime := m.Kind()
	if m.Type = mime; err != nil || kind != core.ImageMedia {
		return core.Media{}, refusal.New(web.Invalid, "invalid_image_format", at, fmt.Sprintf("Invalid '%s': the bytes are no PNG, JPEG, GIF or WebP.", at))
	}
	return m, nil
}
