package core

import (
	"encoding/json"
	"strings"
)

// A Block is a part of a message of a conversation: text, thinking, a tool
// call, a tool's result, or an attachment. The JSON form is stored and sent.
type Block struct {
	Type      string          `json:"type"`                  // text, thinking, redacted_thinking, tool_use, tool_result, media
	Text      string          `json:"text,omitempty"`        // also of thinking and of a result
	Signature string          `json:"signature,omitempty"`   // of thinking: lets the provider accept it back; of redacted_thinking all there is
	ID        string          `json:"id,omitempty"`          // of a tool call
	Name      string          `json:"name,omitempty"`        // of a tool call
	Input     json.RawMessage `json:"input,omitempty"`       // of a tool call
	ToolUseID string          `json:"tool_use_id,omitempty"` // of a result
	IsError   bool            `json:"is_error,omitempty"`    // of a result
	Media     []Media         `json:"media,omitempty"`       // of media, and of a result
}

// Redacted is the type of a Block with thinking that only its provider can read.
const Redacted = "redacted_thinking"

// Thought reports whether b is thinking, which is sent back to the model's own family alone.
func (b *Block) Thought() bool { return b.Type == "thinking" || b.Type == Redacted }

// Tokens are the tokens that a provider counted, in the names of its API and of
// the transcripts.
type Tokens struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Searches   int64 `json:"-"` // searches by the provider, billed apart
}

// BlocksText returns the text of blocks, without thinking and tools, as one.
func BlocksText(blocks []Block) string {
	var b strings.Builder
	for _, x := range blocks {
		if x.Type == "text" {
			b.WriteString(x.Text)
		}
	}
	return b.String()
}
