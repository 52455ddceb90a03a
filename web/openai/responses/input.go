package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/openai/conversation"
	"gatehouse/web/openai/refusal"
)

type (
	// An item is a message of the input or the output, as it is stored and shown.
	item struct {
		ID      string `json:"id"`
		Type    string `json:"type"` // message; item_reference while a request is read
		Status  string `json:"status"`
		Role    string `json:"role"`
		Content []part `json:"content"`
	}
	// A part is text or a picture of an item.
	part struct {
		Type        string    `json:"type"` // input_text, input_image or output_text
		Text        *string   `json:"text,omitempty"`
		Detail      string    `json:"detail,omitempty"`
		ImageURL    string    `json:"image_url,omitempty"`
		Annotations *[]string `json:"annotations,omitempty"` // always empty
		Logprobs    *[]string `json:"logprobs,omitempty"`    // always empty
	}
	wireItem struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	wirePart struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Refusal  string `json:"refusal"`
		ImageURL string `json:"image_url"`
		FileID   string `json:"file_id"`
		Detail   string `json:"detail"`
	}
)

// readInput takes a text, which is the user's, or a list of items.
func (q *request) readInput(v json.RawMessage) error {
	var text string
	if json.Unmarshal(v, &text) == nil {
		q.Input = []item{{Type: "message", Status: "completed", Role: "user", Content: []part{inputText(text)}}}
		return nil
	}
	var raw []json.RawMessage
	if json.Unmarshal(v, &raw) != nil {
		return refusal.BadType("input", "a string or an array of items")
	}
	if len(raw) > conversation.MaxMessages {
		return refusal.New(web.Invalid, "array_above_max_length", "input", fmt.Sprintf("Invalid 'input': at most %d items.", conversation.MaxMessages))
	}
	for i := range raw {
		it, err := readItem(fmt.Sprintf("input[%d]", i), raw[i])
		if err != nil {
			return err
		}
		q.Input = append(q.Input, it)
	}
	return nil
}

func readItem(at string, raw json.RawMessage) (it item, err error) {
	var w wireItem
	if json.Unmarshal(raw, &w) != nil {
		return it, refusal.BadType(at, "an item, such as a message with a role and content")
	}
	if w.Type == "item_reference" || w.Type == "" && w.Role == "" && w.ID != "" {
		if len(w.ID) > maxName {
			return it, refusal.New(web.Invalid, "string_above_max_length", at+".id", fmt.Sprintf("Invalid '%s.id': over %d bytes.", at, maxName))
		}
		return item{Type: "item_reference", ID: w.ID}, nil
	}
	if w.Type != "" && w.Type != "message" {
		return it, refusal.Unsupported(at+".type", "'%s' is none of the items that are supported here, message and item_reference: the tools are the gateway's own")
	}
	it = item{Type: "message", Status: "completed", Role: w.Role}
	it.Content, err = readContent(at+".content", w)
	return it, err
}

// readContent takes a text, or a list of parts.
func readContent(at string, w wireItem) (parts []part, err error) {
	var text string
	if len(w.Content) > 0 && json.Unmarshal(w.Content, &text) == nil && string(w.Content) != "null" {
		return []part{textOf(w.Role, text)}, nil
	}
	var raw []json.RawMessage
	if json.Unmarshal(w.Content, &raw) != nil || raw == nil {
		return nil, refusal.BadType(at, "a string or an array of parts")
	}
	for i := range raw {
		at := fmt.Sprintf("%s[%d]", at, i)
		var p wirePart
		if json.Unmarshal(raw[i], &p) != nil {
			return nil, refusal.BadType(at, "a content part")
		}
		switch {
		case p.Type == "input_text" || p.Type == "output_text" || p.Type == "text":
			parts = append(parts, textOf(w.Role, p.Text))
		case p.Type == "refusal" && w.Role == "assistant":
			parts = append(parts, textOf(w.Role, p.Refusal))
		case p.Type == "input_image" && w.Role != "assistant" && p.FileID == "":
			parts = append(parts, part{Type: "input_image", ImageURL: p.ImageURL, Detail: detail(p.Detail)})
		case p.Type == "input_image" && p.FileID != "":
			return nil, refusal.Unsupported(at+".file_id", "'%s' is not supported here: send the picture as a data URL in image_url")
		default:
			return nil, refusal.Unsupported(at+".type", "'%s' is none of the kinds of content that are supported here: input_text, and in user messages input_image")
		}
	}
	return parts, nil
}

func detail(given string) string {
	if given == "low" || given == "high" || given == "original" {
		return given
	}
	return "auto"
}

func inputText(text string) part { return part{Type: "input_text", Text: &text} }

func outputText(text string) part {
	return part{Type: "output_text", Text: &text, Annotations: &[]string{}, Logprobs: &[]string{}}
}

func textOf(role, text string) part {
	if role == "assistant" {
		return outputText(text)
	}
	return inputText(text)
}

// add appends items to c; at names them in errors.
func add(c *conversation.Conversation, items []item, at func(i int) string) error {
	for i := range items {
		var texts []string
		var media []core.Media
		for j, p := range items[i].Content {
			if err := c.Weigh(len(p.ImageURL) + len(*cmp.Or(p.Text, new(string)))); err != nil {
				return err
			}
			if p.Type != "input_image" {
				texts = append(texts, *p.Text)
				continue
			}
			picture, err := c.Picture(fmt.Sprintf("%s.content[%d].image_url", at(i), j), p.ImageURL)
			if err != nil {
				return err
			}
			media = append(media, picture)
		}
		if err := c.Add(at(i), items[i].Role, strings.Join(texts, "\n"), media); err != nil {
			return err
		}
	}
	return nil
}

func inputAt(i int) string { return fmt.Sprintf("input[%d]", i) }
