// Package chatgpt reads the conversations of a ChatGPT export: trees of messages, of which
// one branch is shown.
package chatgpt

import (
	"bytes"
	"cmp"
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
const Source = "chatgpt"

type conversation struct {
	ID       string           `json:"conversation_id"`
	OtherID  string           `json:"id"`
	Title    string           `json:"title"`
	Created  stamp            `json:"create_time"`
	Updated  stamp            `json:"update_time"`
	Current  string           `json:"current_node"`
	Model    string           `json:"default_model_slug"`
	Archived bool             `json:"is_archived"`
	Mapping  map[string]*node `json:"mapping"`
}

type node struct {
	Parent  string   `json:"parent"`
	Message *message `json:"message"`
}

type message struct {
	Author struct {
		Role string `json:"role"`
		Name string `json:"name"`
	} `json:"author"`
	Created   stamp   `json:"create_time"`
	Content   content `json:"content"`
	Recipient string  `json:"recipient"`
	Metadata  struct {
		Hidden      bool         `json:"is_visually_hidden_from_conversation"`
		Model       string       `json:"model_slug"`
		Attachments []attachment `json:"attachments"`
	} `json:"metadata"`
}

type attachment struct {
	ID    string  `json:"id"`
	Name  string  `json:"name"`
	Type  string  `json:"mimeType"`
	Type2 string  `json:"mime_type"`
	Size  float64 `json:"size"`
}

type content struct {
	Type     string `json:"content_type"`
	Parts    []part `json:"parts"`
	Text     string `json:"text"`
	Language string `json:"language"`
	Result   string `json:"result"`
	Summary  string `json:"summary"`
	Title    string `json:"title"`
	URL      string `json:"url"`
	Thoughts []struct {
		Summary string `json:"summary"`
		Content string `json:"content"`
	} `json:"thoughts"`
}

// A part is a text, or an object that shows a file or the text of a recording.
type part struct {
	Text    string
	Pointer string // to a picture or recording
	unread  bool   // it is neither
}

// UnmarshalJSON implements json.Unmarshaler. What is neither text nor a known object is left out.
func (p *part) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &p.Text)
	}
	var o struct {
		Type    string `json:"content_type"`
		Text    string `json:"text"`
		Pointer string `json:"asset_pointer"`
		Audio   struct {
			Pointer string `json:"asset_pointer"`
		} `json:"audio_asset_pointer"`
	}
	if len(raw) > 0 && raw[0] == '{' {
		p.unread = json.Unmarshal(raw, &o) != nil // a value has another type
	} else {
		p.unread = string(raw) != "null"
	}
	p.Text, p.Pointer = o.Text, cmp.Or(o.Pointer, o.Audio.Pointer)
	return nil
}

// A stamp is a time in seconds since 1970, or as text.
type stamp time.Time

// UnmarshalJSON implements json.Unmarshaler. What is no time between 1970 and 2200 is none.
func (s *stamp) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if sec, err := strconv.ParseFloat(text, 64); err == nil {
		if sec > 0 && sec < 7_258_118_400 {
			*s = stamp(time.UnixMicro(int64(sec * 1e6)).UTC())
		}
		return nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		*s = stamp(t.UTC())
	}
	return nil
}

// Is reports whether raw, an element of an export, may be a conversation of ChatGPT's.
func Is(raw []byte) bool { return bytes.Contains(raw, []byte(`"mapping"`)) }

// Parse returns the conversation that raw, an element of an export, describes. Values of
// other types than expected are as if they were missing. What is no JSON, and what has no id
// or no messages, is core.Invalid; where nothing was written in it, the error is foreign.ErrEmpty.
func Parse(raw []byte) (*foreign.Conversation, error) {
	var in conversation
	err := json.Unmarshal(raw, &in)
	if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !wrong {
		return nil, core.Errorf(core.Invalid, "it is not valid JSON: %v", err)
	}
	c := &foreign.Conversation{Source: Source, ID: cmp.Or(in.ID, in.OtherID), Title: in.Title, Model: in.Model, Archived: in.Archived,
		Created: time.Time(in.Created), Updated: time.Time(in.Updated)}
	if c.ID == "" {
		return nil, core.Errorf(core.Invalid, "it has no id")
	}
	r := &reader{in: &in, out: c, last: map[string]string{}, calls: map[string]string{}, parents: map[string]string{}}
	r.read()
	if len(c.Messages) == 0 && err == nil && in.isEmpty() {
		return nil, foreign.ErrEmpty
	}
	if len(c.Messages) == 0 {
		return nil, core.Errorf(core.Invalid, "it has no messages that can be read")
	}
	return c, nil
}

// isEmpty reports whether nothing was written in the conversation: it has what ChatGPT itself
// puts into each, at most. What cannot be read is something.
func (c *conversation) isEmpty() bool {
	for _, n := range c.Mapping {
		if n == nil || n.Message == nil || n.Message.Author.Role == "system" || n.Message.Metadata.Hidden {
			continue
		}
		if m := n.Message; m.Content.Type != "text" || m.text() != "" || slices.ContainsFunc(m.Content.Parts, func(p part) bool { return p.unread }) {
			return false
		}
	}
	return true
}

// A reader reads one conversation.
type reader struct {
	in      *conversation
	out     *foreign.Conversation
	last    map[string]string // by node that is kept: its last message
	calls   map[string]string // by node: its tool call
	parents map[string]string // by node: the nearest one above that is kept; "" for none
}

// read adds the messages of every node, in the order of time, parents first.
func (r *reader) read() {
	ids := make([]string, 0, len(r.in.Mapping))
	for id, n := range r.in.Mapping {
		if n != nil && id != "" && keeps(n.Message) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		x, y := time.Time(r.in.Mapping[a].Message.Created), time.Time(r.in.Mapping[b].Message.Created)
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	})
	done := make(map[string]bool, len(ids))
	for _, id := range ids {
		var up []string // the nodes above that are not read yet
		for at := id; at != "" && !done[at]; at = r.above(at) {
			done[at] = true
			up = append(up, at)
		}
		for _, at := range slices.Backward(up) {
			r.add(at)
		}
	}
	if n := r.in.Mapping[r.in.Current]; n != nil {
		at := r.in.Current
		if !keeps(n.Message) {
			at = r.above(at)
		}
		r.out.Leaf = r.last[at]
	}
}

// above returns the nearest node above id that is kept; "" without one.
func (r *reader) above(id string) string {
	if p, known := r.parents[id]; known {
		return p
	}
	seen, found := []string{id}, ""
	visited := map[string]bool{id: true}
	for n := r.in.Mapping[id]; n != nil && n.Parent != "" && !visited[n.Parent]; {
		at := n.Parent
		if n = r.in.Mapping[at]; n == nil {
			break
		}
		if keeps(n.Message) {
			found = at
			break
		}
		if p, known := r.parents[at]; known {
			found = p
			break
		}
		visited[at] = true
		seen = append(seen, at)
	}
	for _, s := range seen {
		r.parents[s] = found
	}
	return found
}

// keeps reports whether a message is part of the conversation: neither hidden, nor the
// system's, nor empty.
func keeps(m *message) bool {
	if m == nil {
		return false
	}
	switch m.Content.Type {
	case "user_editable_context", "model_editable_context", "reasoning_recap":
		return false
	}
	switch m.Author.Role {
	case "user", "assistant":
		return !m.Metadata.Hidden && (m.text() != "" || len(m.files()) > 0 || m.calls())
	case "tool":
		return m.text() != "" || len(m.files()) > 0
	}
	return false
}

// calls reports whether m is a call of a tool.
func (m *message) calls() bool {
	return m.Author.Role == "assistant" && m.Recipient != "" && m.Recipient != "all"
}

// text returns what m states.
func (m *message) text() string {
	c := &m.Content
	var parts []string
	for i := range c.Parts {
		if t := strings.TrimSpace(c.Parts[i].Text); t != "" {
			parts = append(parts, c.Parts[i].Text)
		}
	}
	for i := range c.Thoughts {
		parts = append(parts, strings.TrimSpace(c.Thoughts[i].Summary+"\n"+c.Thoughts[i].Content))
	}
	for _, t := range []string{c.Text, c.Result, c.Summary} {
		if strings.TrimSpace(t) != "" {
			parts = append(parts, t)
		}
	}
	if len(parts) > 0 && c.URL != "" {
		parts = append([]string{strings.TrimSpace(c.Title + " " + c.URL)}, parts...)
	}
	return strings.Join(parts, "\n")
}

// files returns the pictures and attachments of m.
func (m *message) files() (list []foreign.File) {
	names := map[string]attachment{}
	for _, a := range m.Metadata.Attachments {
		names[a.ID] = a
	}
	seen := map[string]bool{}
	for i := range m.Content.Parts {
		_, id, ok := strings.Cut(m.Content.Parts[i].Pointer, "://")
		if id, _, _ = strings.Cut(id, "#"); !ok || id == "" || seen[id] {
			continue
		}
		seen[id] = true
		a := names[id]
		list = append(list, foreign.File{Ref: id, Name: a.Name, Type: cmp.Or(a.Type, a.Type2), Size: int64(a.Size)})
	}
	for _, a := range m.Metadata.Attachments {
		if !seen[a.ID] && (a.ID != "" || a.Name != "") {
			seen[a.ID] = a.ID != ""
			list = append(list, foreign.File{Ref: a.ID, Name: a.Name, Type: cmp.Or(a.Type, a.Type2), Size: int64(a.Size)})
		}
	}
	return list
}

// add adds the messages of a node whose parents were added.
func (r *reader) add(id string) {
	m := r.in.Mapping[id].Message
	up := r.above(id)
	out := foreign.Message{ID: id, Parent: r.last[up], Role: "user", Model: m.Metadata.Model, At: time.Time(m.Created), Files: m.files()}
	text := m.text()
	switch {
	case m.Author.Role == "tool":
		call := r.calls[up]
		if call == "" { // a further result, or one of no call
			call = id
			r.out.Messages = append(r.out.Messages, foreign.Message{ID: id + "/call", Parent: out.Parent, Role: "assistant", At: out.At, Blocks: []core.Block{{Type: "tool_use", ID: call, Name: cmp.Or(m.Author.Name, "tool")}}})
			out.Parent = id + "/call"
		}
		out.Model = ""
		out.Blocks = []core.Block{{Type: "tool_result", ToolUseID: call, Text: text, IsError: m.Content.Type == "system_error"}}
	case m.calls():
		out.Role, r.calls[id] = "assistant", id
		out.Blocks = []core.Block{{Type: "tool_use", ID: id, Name: m.Recipient, Input: input(text, m.Content.Type)}}
	case m.Author.Role == "assistant":
		out.Role = "assistant"
		kind := "text"
		if m.Content.Type == "thoughts" {
			kind = "thinking"
		}
		if m.Content.Type == "code" {
			text = "```" + strings.Map(letters, m.Content.Language) + "\n" + text + "\n```"
		}
		out.Blocks = []core.Block{{Type: kind, Text: text}}
	default:
		out.Model = ""
		out.Blocks = []core.Block{{Type: "text", Text: text}}
	}
	r.last[id] = id
	r.out.Messages = append(r.out.Messages, out)
}

func letters(c rune) rune {
	if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' {
		return c
	}
	return -1
}

// input returns what a tool is called with: text, if that is an object of JSON.
func input(text, kind string) json.RawMessage {
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	key := "text"
	if kind == "code" {
		key = "code"
	}
	b, err := json.Marshal(map[string]string{key: text})
	if err != nil { // texts have none
		return nil
	}
	return b
}
