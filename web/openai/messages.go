package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
)

// begins is in front of a conversation that the model began: providers
// want a user's text first.
const begins = "(The conversation begins with your words.)"

type wireMessage struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	Name         string          `json:"name"`
	Refusal      string          `json:"refusal"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage `json:"function_call"`
	Audio        json.RawMessage `json:"audio"`
}

type wirePart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// readMessages takes the conversation: system and developer messages, wherever
// they are, are the system prompt; the last of the others is what is to be
// answered.
func (q *request) readMessages(v json.RawMessage) error {
	var raw []json.RawMessage
	if json.Unmarshal(v, &raw) != nil {
		return badType("messages", "an array of objects")
	}
	if len(raw) > maxMessages {
		return refuse(web.Invalid, "array_above_max_length", "messages", fmt.Sprintf("Invalid 'messages': at most %d messages.", maxMessages))
	}
	c := conversation{}
	for i := range raw {
		var m wireMessage
		if json.Unmarshal(raw[i], &m) != nil {
			return badType(fmt.Sprintf("messages[%d]", i), "a message with a role and content")
		}
		if err := c.add(fmt.Sprintf("messages[%d]", i), &m); err != nil {
			return err
		}
	}
	return c.end(q)
}

// A conversation is messages as they are read.
type conversation struct {
	system   []string
	said     []core.Said
	pictures int
}

func (c *conversation) add(at string, m *wireMessage) error {
	for name, v := range map[string]json.RawMessage{"tool_calls": m.ToolCalls, "function_call": m.FunctionCall, "audio": m.Audio} {
		if len(v) > 0 && string(v) != "null" && string(v) != "[]" {
			return unsupported(at+"."+name, "'%s' is not supported here: the tools are the gateway's own, and answers are text")
		}
	}
	text, media, err := c.content(at+".content", m)
	if err != nil {
		return err
	}
	if len(text) > MaxMessage {
		return refuse(web.Invalid, "string_above_max_length", at+".content", fmt.Sprintf("Invalid '%s.content': over %d bytes of text.", at, MaxMessage))
	}
	if name := core.CleanName(m.Name); name != "" && m.Role == "user" && text != "" {
		text = name + ": " + text
	}
	switch m.Role {
	case "system", "developer":
		if len(media) > 0 {
			return unsupported(at+".content", "'%s' holds a picture, which a "+m.Role+" message cannot")
		}
		if strings.TrimSpace(text) != "" {
			c.system = append(c.system, text)
		}
	case "user", "assistant":
		c.said = append(c.said, core.Said{Role: m.Role, Text: text, Media: media})
	case "tool", "function":
		return unsupported(at+".role", "'%s' is '"+m.Role+"', which is not supported here: the tools are the gateway's own")
	default:
		return refuse(web.Invalid, "invalid_value", at+".role", fmt.Sprintf("Invalid value for '%s.role': supported are 'system', 'developer', 'user' and 'assistant'.", at))
	}
	return nil
}

func unsupported(param, format string) error {
	return refuse(web.UnsupportedField, "unsupported_parameter", param, "Unsupported parameter: "+fmt.Sprintf(format, param)+".")
}

// end gives q the conversation.
func (c *conversation) end(q *request) error {
	q.System = strings.Join(c.system, "\n\n")
	if len(q.System) > MaxMessage {
		return refuse(web.Invalid, "string_above_max_length", "messages", fmt.Sprintf("Invalid 'messages': over %d bytes in system messages.", MaxMessage))
	}
	last := len(c.said) - 1
	if last < 0 || c.said[last].Role != "user" || empty(&c.said[last]) {
		return refuse(web.Invalid, "invalid_value", "messages", "Invalid 'messages': the last one must be of role 'user' and have content.")
	}
	q.Last = c.said[last]
	for _, m := range c.said[:last] {
		if empty(&m) {
			continue
		}
		if len(q.Before) == 0 && m.Role == "assistant" {
			q.Before = append(q.Before, core.Said{Role: "user", Text: begins})
		}
		q.Before = append(q.Before, m)
	}
	return nil
}

func empty(m *core.Said) bool { return strings.TrimSpace(m.Text) == "" && len(m.Media) == 0 }

// content returns a message's text and pictures: a string, or parts.
func (c *conversation) content(at string, m *wireMessage) (text string, media []core.Media, err error) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		if m.Role != "assistant" {
			return "", nil, badType(at, "a string or an array of parts")
		}
		return m.Refusal, nil, nil
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", nil, badType(at, "a string or an array of parts")
	}
	var texts []string
	for i := range parts {
		at := fmt.Sprintf("%s[%d]", at, i)
		var p wirePart
		if json.Unmarshal(parts[i], &p) != nil {
			return "", nil, badType(at, "a content part")
		}
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "refusal" && m.Role == "assistant":
			texts = append(texts, p.Refusal)
		case p.Type == "image_url" && p.ImageURL != nil && m.Role != "assistant":
			picture, err := c.picture(at+".image_url.url", p.ImageURL.URL)
			if err != nil {
				return "", nil, err
			}
			media = append(media, picture)
		default:
			return "", nil, unsupported(at+".type", "'%s' is none of the kinds of content that are supported here: text, and in user messages image_url")
		}
	}
	return strings.Join(texts, "\n"), media, nil
}

// picture reads a data URL (RFC 2397). An address elsewhere is not fetched.
func (c *conversation) picture(at, url string) (core.Media, error) {
	head, data, ok := strings.Cut(url, ",")
	if !ok || !strings.HasPrefix(strings.ToLower(head), "data:") || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return core.Media{}, refuse(web.UnsupportedField, "invalid_image_url", at, fmt.Sprintf("Invalid '%s': a picture must be a data URL in base64; addresses are not fetched.", at))
	}
	if c.pictures++; c.pictures > maxPictures {
		return core.Media{}, refuse(web.Invalid, "invalid_value", at, fmt.Sprintf("Invalid 'messages': at most %d pictures.", maxPictures))
	}
	if base64.StdEncoding.DecodedLen(len(data)) > maxPicture+2 {
		return core.Media{}, refuse(web.Invalid, "image_too_large", at, fmt.Sprintf("Invalid '%s': a picture is at most %s.", at, core.ByteSize(maxPicture)))
	}
	bytes, err := base64.StdEncoding.DecodeString(data)
	m := core.Media{Data: bytes}
	kind, mime := m.Kind()
	if m.Type = mime; err != nil || kind != core.ImageMedia {
		return core.Media{}, refuse(web.Invalid, "invalid_image_format", at, fmt.Sprintf("Invalid '%s': the bytes are no PNG, JPEG, GIF or WebP.", at))
	}
	return m, nil
}
