package anthropic

import "encoding/json"

// A request is one to /v1/messages. What is zero is not sent, except where the API wants it.
type request struct {
	model       string
	maxTokens   int64
	thinks      bool // as the model sees fit; a summary is shown
	temperature *float64
	stop        []string
	format      json.RawMessage // the schema of the answer; nil: text
	system      []block         // texts
	tools       []tool
	noCalls     bool // the tools are named, but none may be called
	messages    []turn
}

// Roles of a turn.
const (
	user      = "user"
	assistant = "assistant"
)

// A turn is one message of the conversation.
type turn struct {
	role    string
	content []block
}

// A block is one content block; its kind reports which fields are sent.
type block struct {
	kind      string          // text, thinking, redacted_thinking, tool_use, tool_result, image or document; "" is raw
	text      string          // of text and thinking
	signature string          // of thinking
	id        string          // of a call, or of the call that a result belongs to
	name      string          // of the called tool; of a document, where it has one
	input     json.RawMessage // of a call: an object
	failed    bool            // of a result
	content   []block         // of a result: texts, pictures and documents
	mime      string          // of a picture
	data      string          // of a picture or document, in base64; of redacted thinking
	raw       json.RawMessage // the whole block as the API sent it
	cached    bool            // the prompt is cached up to its end
}

func textBlock(s string) block { return block{kind: "text", text: s} }

// A tool is one offered tool, or the provider's own search.
type tool struct {
	Type    string          `json:"type,omitempty"`
	Name    string          `json:"name"`
	About   string          `json:"description,omitempty"`
	Schema  json.RawMessage `json:"input_schema,omitempty"`
	MaxUses int64           `json:"max_uses,omitempty"`
	Allowed []string        `json:"allowed_domains,omitempty"`
	Blocked []string        `json:"blocked_domains,omitempty"`
	Cached  *cachePoint     `json:"cache_control,omitempty"`
}

// A cachePoint marks the end of what is cached of a prompt.
type cachePoint struct {
	Type string `json:"type"`
}

var ephemeral = cachePoint{"ephemeral"}

// An event is one of a stream, with the fields of all types that are read.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage figures `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta change          `json:"delta"`
	Usage figures         `json:"usage"`
}

// A change is what an event adds to a block, or to the message.
type change struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Thinking   string          `json:"thinking"`
	Signature  string          `json:"signature"`
	Input      string          `json:"partial_json"`
	Citation   json.RawMessage `json:"citation"`
	StopReason string          `json:"stop_reason"`
}

// figures are what was used; nil was not reported.
type figures struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Server     *struct {
		Searches *int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// An opened block is one as content_block_start shows it.
type opened struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"` // of redacted thinking
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Content   json.RawMessage `json:"content"` // of a web_search_tool_result
}

// Reasons why a message ends.
const (
	stopTokens  = "max_tokens"
	stopWindow  = "model_context_window_exceeded"
	stopPause   = "pause_turn"
	stopRefusal = "refusal"
)
