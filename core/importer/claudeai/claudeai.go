// Package claudeai reads the conversations of a Claude export: lists of messages, which newer
// exports link to their parents.
package claudeai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
)

// Source is the source of the sessions, as their rows name it.
const Source = "claude"

type conversation struct {
	UUID     string    `json:"uuid"`
	ID       string    `json:"id"`
	OtherID  string    `json:"conversation_id"`
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Model    string    `json:"model"`
	Created  stamp     `json:"created_at"`
	Updated  stamp     `json:"updated_at"`
	Leaf     string    `json:"current_leaf_message_uuid"`
	Archived bool      `json:"is_archived"`
	Messages []message `json:"chat_messages"`
	Others   []message `json:"messages"`
}

type message struct {
	UUID        string       `json:"uuid"`
	ID          string       `json:"id"`
	Sender      string       `json:"sender"`
	Role        string       `json:"role"`
	Text        string       `json:"text"`
	Content     content      `json:"content"`
	Model       string       `json:"model"`
	Created     stamp        `json:"created_at"`
	Parent      string       `json:"parent_message_uuid"`
	Attachments []attachment `json:"attachments"`
	Files       []attachment `json:"files"`
	Newer       []attachment `json:"files_v2"`
}

type attachment struct {
	UUID  string  `json:"file_uuid"`
	ID    string  `json:"id"`
	Name  string  `json:"file_name"`
	Type  string  `json:"file_type"`
	Size  float64 `json:"file_size"`
	Text  string  `json:"extracted_content"`
	Other string  `json:"name"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   result          `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    data            `json:"source"`
}

type data struct {
	Data string `json:"data"`
}

// A result is what a tool returned: a text, or texts and pictures.
type result struct {
	text   string
	blocks []shown
}

// A shown is a block of a result. Nothing is nested in it, so that reading takes time in
// proportion to the text.
type shown struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source data   `json:"source"`
}

// content is a text, or a list of blocks.
type content struct {
	text   string
	blocks []block
	unread bool // some of it is neither
}

// UnmarshalJSON implements json.Unmarshaler. What is neither is left out.
func (c *content) UnmarshalJSON(raw []byte) error {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		return json.Unmarshal(raw, &c.text)
	case len(raw) > 0 && raw[0] == '[':
		c.unread = json.Unmarshal(raw, &c.blocks) != nil // a value has another type
	default:
		c.unread = string(raw) != "null"
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. What is neither is empty.
func (r *result) UnmarshalJSON(raw []byte) error {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		return json.Unmarshal(raw, &r.text)
	case len(raw) > 0 && raw[0] == '[':
		_ = json.Unmarshal(raw, &r.blocks) // what has another type is empty
	}
	return nil
}

// said returns the texts of r.
func (r *result) said() string {
	parts := []string{r.text}
	for i := range r.blocks {
		parts = append(parts, r.blocks[i].Text)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}

// A stamp is a time as text, or in seconds since 1970.
type stamp time.Time

// UnmarshalJSON implements json.Unmarshaler. What is no time is none.
func (s *stamp) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.Year() > 1970 && t.Year() < 2200 {
		*s = stamp(t.UTC())
	} else if sec, err := strconv.ParseFloat(text, 64); err == nil && sec > 0 && sec < 7_258_118_400 {
		*s = stamp(time.UnixMicro(int64(sec * 1e6)).UTC())
	}
	return nil
}

// Is reports whether raw, an element of an export, may be a conversation of Claude's.
func Is(raw []byte) bool {
	return bytes.Contains(raw, []byte(`"chat_messages"`)) || bytes.Contains(raw, []byte(`"messages"`))
}

// Parse returns the conversation that raw, an element of an export, describes. Values of
// other types than expected are as if they were missing. What is no JSON, and what has no id
// or no messages, is core.Invalid; where nothing was written in it, the error is foreign.ErrEmpty.
func Parse(raw []byte) (*foreign.Conversation, error) {
	var in conversation
	err := json.Unmarshal(raw, &in)
	if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !wrong {
		return nil, core.Errorf(core.Invalid, "it is not valid JSON: %v", err)
	}
	c := &foreign.Conversation{Source: Source, ID: cmp.Or(in.UUID, in.ID, in.OtherID), Title: cmp.Or(in.Name, in.Title), Model: in.Model,
		Archived: in.Archived, Created: time.Time(in.Created), Updated: time.Time(in.Updated)}
	if c.ID == "" {
		return nil, core.Errorf(core.Invalid, "it has no id")
	}
	if len(in.Messages) == 0 {
		in.Messages = in.Others
	}
	r := reader{out: c, ends: make(map[string]string, len(in.Messages))}
	for i := range in.Messages {
		r.add(i, &in.Messages[i])
	}
	r.link(&in)
	if len(c.Messages) == 0 && err == nil && in.isEmpty() {
		return nil, foreign.ErrEmpty
	}
	if len(c.Messages) == 0 {
		return nil, core.Errorf(core.Invalid, "it has no messages that can be read")
	}
	return c, nil
}

// isEmpty reports whether nothing was written in the conversation: what cannot be read is
// something.
func (c *conversation) isEmpty() bool {
	return !slices.ContainsFunc(c.Messages, func(m message) bool {
		return m.Content.unread || strings.TrimSpace(m.Text+m.Content.text) != "" || slices.ContainsFunc(m.Content.blocks, func(b block) bool {
			return b.Type != "text" || strings.TrimSpace(b.Text) != ""
		})
	})
}

// A reader reads one conversation.
type reader struct {
	out    *foreign.Conversation
	ends   map[string]string // the last part of each message, by its id
	parent []string          // of the messages in out: an id of the export, where it is the first part
	linked bool              // messages name their parents
	last   string            // the last part of the message before
	part   foreign.Message
	n      int // parts of the message
}

// add adds a message: one part for what the model states up to the results of its calls, one for
// these, and so on.
func (r *reader) add(i int, m *message) {
	role := cmp.Or(m.Sender, m.Role)
	if role == "human" {
		role = "user"
	}
	id := cmp.Or(m.UUID, m.ID, "#"+strconv.Itoa(i))
	if _, twice := r.ends[id]; role != "user" && role != "assistant" || twice {
		return
	}
	r.n = 0
	begin := func(role string) { r.part = foreign.Message{Role: role, Model: m.Model, At: time.Time(m.Created)} }
	end := func() {
		if len(r.part.Blocks) > 0 || len(r.part.Files) > 0 {
			r.flush(id, m.Parent)
		}
	}
	begin(role)
	var open []string // calls without a result
	for k, b := range blocksOf(m) {
		isResult := b.Type == "tool_result"
		switch {
		case isResult && role == "assistant" && r.part.Role == "assistant":
			end()
			begin("user")
			r.part.Model = ""
		case !isResult && role == "assistant" && r.part.Role == "user":
			end()
			begin(role)
		}
		switch b.Type {
		case "tool_use":
			b.ID = cmp.Or(b.ID, id+"/"+strconv.Itoa(k))
			open = append(open, b.ID)
		case "tool_result":
			if b.ToolUseID == "" && len(open) > 0 {
				b.ToolUseID = open[0]
			}
			open = slices.DeleteFunc(open, func(o string) bool { return o == b.ToolUseID })
		}
		r.part.Blocks = append(r.part.Blocks, b)
	}
	if files := filesOf(m); len(files) > 0 {
		if r.part.Role != role {
			end()
			begin(role)
		}
		r.part.Files = files
	}
	end()
	r.ends[id] = ""
	if r.n > 0 {
		r.ends[id] = r.last
	}
}

// flush adds the part as the next one of the message id.
func (r *reader) flush(id, parent string) {
	p := r.part
	p.ID, p.Parent = id, r.last
	if r.n > 0 {
		p.ID, parent = id+"#"+strconv.Itoa(r.n), ""
	} else {
		r.linked = r.linked || parent != ""
	}
	r.n++
	r.last = p.ID
	r.out.Messages, r.parent = append(r.out.Messages, p), append(r.parent, parent)
}

// none is what the first message names as its parent.
const none = "00000000-0000-4000-8000-000000000000"

// link hangs the messages behind their parents, where the export names these. Without, each
// hangs behind the one before it.
func (r *reader) link(in *conversation) {
	if end := r.ends[in.Leaf]; end != "" {
		r.out.Leaf = end
	}
	if !r.linked {
		return
	}
	above := make(map[string]string, len(in.Messages)) // of messages that were left out
	for i := range in.Messages {
		if m := &in.Messages[i]; r.ends[m.UUID] == "" {
			above[m.UUID] = m.Parent
		}
	}
	for i := range r.out.Messages {
		var passed []string
		p := r.parent[i]
		for p != "" && r.ends[p] == "" && len(passed) <= len(above) {
			passed = append(passed, p)
			p = above[p]
		}
		if r.ends[p] == "" {
			p = "" // a cycle, or the beginning
		}
		for _, id := range passed { // so that a long way is gone once
			above[id] = p
		}
		switch {
		case r.parent[i] == none:
			r.out.Messages[i].Parent = ""
		case r.ends[p] != "":
			r.out.Messages[i].Parent = r.ends[p]
		}
	}
}

// blocksOf returns the blocks of a message; those of other kinds than a transcript has are
// left out.
func blocksOf(m *message) (out []core.Block) {
	for i := range m.Content.blocks {
		b := &m.Content.blocks[i]
		switch b.Type {
		case "text", "voice_note":
			if text := strings.TrimSpace(b.Text); text != "" {
				out = append(out, core.Block{Type: "text", Text: b.Text})
			}
		case "thinking":
			if strings.TrimSpace(b.Thinking) != "" {
				out = append(out, core.Block{Type: "thinking", Text: b.Thinking})
			}
		case "tool_use":
			out = append(out, core.Block{Type: "tool_use", ID: b.ID, Name: cmp.Or(b.Name, "tool"), Input: b.Input})
		case "tool_result":
			out = append(out, core.Block{Type: "tool_result", ToolUseID: b.ToolUseID, Text: b.Content.said(), IsError: b.IsError, Media: picturesOf(b.Content.blocks...)})
		case "image":
			if media := picturesOf(shown{Type: b.Type, Source: b.Source}); len(media) > 0 {
				out = append(out, core.Block{Type: "media", Media: media})
			}
		}
	}
	for _, text := range []string{m.Content.text, m.Text} {
		if strings.TrimSpace(text) != "" && !slices.ContainsFunc(out, func(b core.Block) bool { return b.Type == "text" }) {
			out = append(out, core.Block{Type: "text", Text: text})
		}
	}
	return out
}

// picturesOf returns the pictures that blocks hold themselves.
func picturesOf(blocks ...shown) (out []core.Media) {
	for i := range blocks {
		if b := &blocks[i]; b.Type == "image" && b.Source.Data != "" {
			if data, err := base64.StdEncoding.DecodeString(b.Source.Data); err == nil {
				m := core.Media{Data: data}
				if _, m.Type = m.Kind(); m.Type != "" {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// filesOf returns the files of a message, each once.
func filesOf(m *message) (out []foreign.File) {
	seen := map[string]bool{}
	for _, a := range slices.Concat(m.Attachments, m.Newer, m.Files) {
		f := foreign.File{Ref: cmp.Or(a.UUID, a.ID), Name: cmp.Or(a.Name, a.Other), Type: a.Type, Size: int64(a.Size), Text: a.Text}
		if f.Ref == "" && f.Name == "" && f.Text == "" {
			continue
		}
		if key := cmp.Or(a.UUID, f.Name); key != "" && f.Text == "" {
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		out = append(out, f)
	}
	return out
}
