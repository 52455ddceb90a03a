package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/openai/conversation"
	"gatehouse/web/openai/refusal"
)

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
func (q *request) readMessages(v json.RawMessage) (err error) {
	var raw []json.RawMessage
	if json.Unmarshal(v, &raw) != nil {
		return refusal.BadType("messages", "an array of objects")
	}
	if len(raw) > conversation.MaxMessages {
		return refusal.New(web.Invalid, "array_above_max_length", "messages", fmt.Sprintf("Invalid 'messages': at most %d messages.", conversation.MaxMessages))
	}
	c := reader{conversation.Conversation{Param: "messages"}}
	for i := range raw {
		var m wireMessage
		if json.Unmarshal(raw[i], &m) != nil {
			return refusal.BadType(fmt.Sprintf("messages[%d]", i), "a message with a role and content")
		}
		if err := c.add(fmt.Sprintf("messages[%d]", i), &m); err != nil {
			return err
		}
	}
	if q.System, err = c.System(); err != nil {
		return err
	}
	q.Before, q.Last, err = c.Said()
	return err
}

// A reader adds messages to a conversation.
type reader struct{ conversation.Conversation }

func (c *reader) add(at string, m *wireMessage) error {
	for name, v := range map[string]json.RawMessage{"tool_calls": m.ToolCalls, "function_call": m.FunctionCall, "audio": m.Audio} {
		if len(v) > 0 && string(v) != "null" && string(v) != "[]" {
			return refusal.Unsupported(at+"."+name, "'%s' is not supported here: the tools are the gateway's own, and answers are text")
		}
	}
	text, media, err := c.content(at+".content", m)
	if err != nil {
		return err
	}
	if name := core.CleanName(m.Name); name != "" && m.Role == "user" && text != "" {
		text = name + ": " + text
	}
	if m.Role == "tool" || m.Role == "function" {
		return refusal.Unsupported(at+".role", "'%s' is '"+m.Role+"', which is not supported here: the tools are the gateway's own")
	}
	return c.Add(at, m.Role, text, media)
}

// content returns a message's text and pictures: a string, or parts.
func (c *reader) content(at string, m *wireMessage) (text string, media []core.Media, err error) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		if m.Role != "assistant" {
			return "", nil, refusal.BadType(at, "a string or an array of parts")
		}
		return m.Refusal, nil, nil
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", nil, refusal.BadType(at, "a string or an array of parts")
	}
	var texts []string
	for i := range parts {
		at := fmt.Sprintf("%s[%d]", at, i)
		var p wirePart
		if json.Unmarshal(parts[i], &p) != nil {
			return "", nil, refusal.BadType(at, "a content part")
		}
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "refusal" && m.Role == "assistant":
			texts = append(texts, p.Refusal)
		case p.Type == "image_url" && p.ImageURL != nil && m.Role != "assistant":
			picture, err := c.Picture(at+".image_url.url", p.ImageURL.URL)
			if err != nil {
				return "", nil, err
			}
			media = append(media, picture)
		default:
			return "", nil, refusal.Unsupported(at+".type", "'%s' is none of the kinds of content that are supported here: text, and in user messages image_url")
		}
	}
	return strings.Join(texts, "\n"), media, nil
}
