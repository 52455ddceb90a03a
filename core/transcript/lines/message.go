// Package lines reads the lines of a transcript as messages, and writes messages as lines:
// their form, how lines are linked, and what a model is sent of them.
package lines

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/vault/line"
)

// A Message is one line of a conversation. On reading, the lines that Claude
// Code writes for one answer (a line per block) are one Message again.
type Message struct {
	Role    string // user or assistant; a tool's results are blocks of a user message
	Blocks  []core.Block
	Model   string      // of an assistant message
	Stop    string      // end_turn, tool_use, max_tokens; of an assistant message
	Usage   core.Tokens // of an assistant message, where known
	Run     string      // on reading: the run that wrote it, "" for other programs' lines
	At      time.Time   // on reading: when it was written; zero where the line does not say
	Author  *Author     // of a user message from a chat, where known
	Summary bool        // on reading: it represents what a compaction took out in front of it

	// Helpers are what the helpers of its calls of Task did, by the calls' ids; on reading
	// for users (Page, Turn, Read).
	Helpers map[string][]Message

	Refused bool // by the model's provider: it is not sent again

	UUID       string   // of its line; "" for what is not written
	Earlier    []string // uuids of the answer's lines before it, as the CLI writes them
	ProviderID string   // the provider's id of the message
}

// wire is a message as Claude's API spells it.
type wire struct {
	ID         string       `json:"id,omitempty"`
	Type       string       `json:"type,omitempty"`
	Role       string       `json:"role"`
	Model      string       `json:"model,omitempty"`
	Content    any          `json:"content"`
	StopReason *string      `json:"stop_reason,omitempty"`
	Usage      *core.Tokens `json:"usage,omitempty"`
}

type (
	wireText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	wireThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	wireRedacted struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
	wireCall struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	wireResult struct {
		Type      string `json:"type"`
		ToolUseID string `json:"tool_use_id"`
		Content   any    `json:"content"` // a string, or blocks
		IsError   bool   `json:"is_error,omitempty"`
	}
)

// wire is b as blocks of a line: one, or one for each medium.
func encodeBlock(b *core.Block) []any {
	switch b.Type {
	case "thinking":
		return []any{wireThinking{b.Type, b.Text, b.Signature}}
	case core.Redacted:
		return []any{wireRedacted{b.Type, b.Signature}}
	case "tool_use":
		input := b.Input
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		return []any{wireCall{b.Type, b.ID, b.Name, input}}
	case "media":
		return wireMedia(b.Media)
	case "tool_result":
		result, media := wireResult{b.Type, b.ToolUseID, b.Text, b.IsError}, wireMedia(b.Media)
		if len(media) == 0 || b.IsError { // the API takes text only where a tool failed
			return append([]any{result}, media...)
		}
		if b.Text != "" {
			media = append([]any{wireText{"text", b.Text}}, media...)
		}
		result.Content = media
		return []any{result}
	}
	return []any{wireText{"text", b.Text}}
}

// Encode returns the message member of the line with this uuid.
func (m *Message) Encode(line string) (json.RawMessage, error) {
	w := wire{Role: m.Role}
	if m.Role == "user" && len(m.Blocks) == 1 && m.Blocks[0].Type == "text" {
		w.Content = m.Blocks[0].Text
	} else {
		var blocks []any
		for i := range m.Blocks {
			blocks = append(blocks, encodeBlock(&m.Blocks[i])...)
		}
		if len(blocks) == 0 { // a line without content is no message
			blocks = []any{wireText{"text", "(nothing)"}}
		}
		w.Content = blocks
	}
	if m.Role == "assistant" {
		stop := m.Stop
		if stop == "" {
			stop = "end_turn"
		}
		w.ID, w.Type, w.Model, w.StopReason, w.Usage = MessageID(line), "message", plainModel(m.Model), &stop, &m.Usage
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(w); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// ownModels is the provider in front of a model's name that Claude Code leaves
// out; it takes a model's thinking for its own only under that name.
const ownModels = "anthropic/"

func plainModel(model string) string {
	if plain, ok := strings.CutPrefix(model, ownModels); ok && strings.HasPrefix(plain, "claude") {
		return plain
	}
	return model
}

func MessageID(line string) string { return "msg_" + strings.ReplaceAll(line, "-", "") }

// Decode reads a user or assistant line; false for what holds no message.
func Decode(l *line.Line) (Message, bool) {
	var w struct {
		ID         string          `json:"id"`
		Role       string          `json:"role"`
		Model      string          `json:"model"`
		Content    json.RawMessage `json:"content"`
		StopReason string          `json:"stop_reason"`
		Usage      core.Tokens     `json:"usage"`
	}
	if l.Type != "user" && l.Type != "assistant" || l.IsAPIError || json.Unmarshal(l.Message, &w) != nil {
		return Message{}, false
	}
	blocks := decodeBlocks(w.Content)
	if len(blocks) == 0 {
		return Message{}, false
	}
	if w.ID == MessageID(l.UUID) && strings.HasPrefix(w.Model, "claude") { // written here
		w.Model = ownModels + w.Model
	}
	var author *Author
	if len(l.Author) > 0 && l.Type == "user" && json.Unmarshal(l.Author, &author) != nil {
		author = nil // of another program
	}
	return Message{Role: l.Type, Blocks: blocks, Model: w.Model, Stop: w.StopReason, Usage: w.Usage,
		Run: l.RequestID, At: LineTime(l), Author: author, UUID: l.UUID, ProviderID: w.ID}, true
}

// decodeBlocks reads content: a string, or blocks. Kinds that we cannot replay
// are left out.
func decodeBlocks(content json.RawMessage) []core.Block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if text == "" {
			return nil
		}
		return []core.Block{{Type: "text", Text: text}}
	}
	var raw []wireBlock
	if json.Unmarshal(content, &raw) != nil {
		return nil
	}
	var blocks []core.Block
	for i := range raw {
		r := &raw[i]
		b := core.Block{Type: r.Type}
		switch r.Type {
		case "text":
			b.Text = r.Text
		case "thinking":
			b.Text, b.Signature = r.Thinking, r.Signature
		case core.Redacted:
			b.Signature = r.Data
		case "tool_use":
			b.ID, b.Name, b.Input = r.ID, r.Name, r.Input
		case "tool_result":
			b.ToolUseID, b.IsError = r.ToolUseID, r.IsError
			b.Text, b.Media = shownBy(decodeBlocks(r.Content))
		case "image", "document":
			m, ok := r.media()
			if !ok {
				continue
			}
			if n := len(blocks); n > 0 && blocks[n-1].Type == "media" {
				blocks[n-1].Media = append(blocks[n-1].Media, m)
				continue
			}
			b.Type, b.Media = "media", []core.Media{m}
		default:
			continue
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// wireBlock is a block of any kind, as it is read.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"` // of redacted thinking
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    *wireSource     `json:"source"`
	Title     string          `json:"title"`
}

// shownBy returns a result's text and media.
func shownBy(content []core.Block) (text string, media []core.Media) {
	var parts []string
	for i := range content {
		if content[i].Type == "text" {
			parts = append(parts, content[i].Text)
		}
		media = append(media, content[i].Media...)
	}
	return strings.Join(parts, "\n"), media
}

// Begins reports whether m is where a turn begins: a user's text.
func (m *Message) Begins() bool {
	return m.Role == "user" && m.Blocks[0].Type != "tool_result"
}

// Size returns what m takes of a model's window, in bytes.
func (m *Message) Size() int {
	if m.Refused {
		return 16 + len(refusedResult)
	}
	return m.Bytes()
}

// Bytes returns approximately how large m is.
func (m *Message) Bytes() int {
	n := 16
	for i := range m.Blocks {
		b := &m.Blocks[i]
		n += len(b.Text) + len(b.Signature) + len(b.Name) + len(b.Input) + 8
		for k := range b.Media {
			n += mediaSize(&b.Media[k])
		}
	}
	return n
}

// Memory returns approximately how much memory m needs, in bytes.
func (m *Message) Memory() int {
	return m.Bytes() + 320 + 192*len(m.Blocks) + m.mediaBytes() + m.Author.memory()
}

// LineTime returns the time that l records.
func LineTime(l *line.Line) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, l.Timestamp) // broken: zero
	return at
}

const TimeFormat = "2006-01-02T15:04:05.000Z"
