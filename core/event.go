package core

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// An Event is one thing that happens in a run, in the one JSON form that SSE,
// chat rendering, panel and replay share (docs/api.md lists the fields).
//
// Order: Session, UserMessage, PromptMetadata, Init, ModelChosen, then any of
// TextDelta, Thinking, ToolUseStart, ToolResult, PermissionRequest,
// PermissionResolved, UserQuestion, Deliberation, Warning; then exactly one of Done, Aborted,
// Failed; then MessageStop. If another runtime answers, Warnings may precede Init, and
// a run that it did not begin has no Init.
type Event interface{ EventType() string }

type (
	// Session opens the stream.
	Session struct {
		ID               string     `json:"id"`
		RunID            string     `json:"run_id"`
		Title            string     `json:"title"`
		CreatedAt        time.Time  `json:"created_at"`
		TrustLevel       Trust      `json:"trust_level"`
		WorkingDirectory string     `json:"working_directory"`
		ResumeInfo       ResumeInfo `json:"resume_info"`
	}
	// ResumeInfo is how the session was continued: sdk_resume, context_injection or new.
	ResumeInfo struct {
		Method               string `json:"method"`
		IsNewSession         bool   `json:"is_new_session"`
		PreviousMessageCount int    `json:"previous_message_count"`
		SDKSessionAvailable  bool   `json:"sdk_session_available"`
	}
	UserMessage struct {
		Content string `json:"content"`
	}
	PromptMetadata struct {
		PromptSource     string   `json:"prompt_source"` // default, vault, agent, custom
		ContextFiles     int      `json:"context_files"`
		ContextFilePaths []string `json:"context_file_paths"`
		ContextTokens    int      `json:"context_tokens"`
		ContextTruncated bool     `json:"context_truncated"`
		Memory           []string `json:"memory,omitempty"` // ids of the corrections of the person that are in it
		AgentName        string   `json:"agent_name"`
		AvailableAgents  []string `json:"available_agents"`
		Model            string   `json:"model"`
	}
	Init struct {
		Tools          []string `json:"tools"`
		PermissionMode string   `json:"permission_mode"`
		MCPServers     []string `json:"mcp_servers"`
		Runtime        string   `json:"runtime,omitempty"` // what answers with a loop of its own, and its version
	}
	ModelChosen struct {
		Model string `json:"model"`
	}
	// TextDelta is the next piece of the answer, not the whole so far.
	TextDelta struct {
		Content string `json:"content"`
	}
	Thinking struct {
		Content string `json:"content"`
	}
	// Parent is the call of Task whose helper made the call; "" for the agent's own.
	ToolUseStart struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		Parent string          `json:"parent_tool_use_id,omitempty"`
	}
	ToolResult struct {
		ToolUseID string `json:"tool_use_id"`
		Result    string `json:"result"`
		IsError   bool   `json:"is_error"`
		Parent    string `json:"parent_tool_use_id,omitempty"`
	}
	PermissionRequest struct {
		ID              string           `json:"id"`
		ToolName        string           `json:"tool_name"`
		Kind            string           `json:"kind"` // read, write, bash, web
		Path            string           `json:"path,omitempty"`
		Command         string           `json:"command,omitempty"`
		URL             string           `json:"url,omitempty"`
		SuggestedGrants []SuggestedGrant `json:"suggested_grants"`
		ExpiresAt       time.Time        `json:"expires_at"`
	}
	SuggestedGrant struct {
		Scope   string `json:"scope"`
		Pattern string `json:"pattern"`
		Label   string `json:"label"`
	}
	PermissionResolved struct {
		ID       string `json:"id"`
		Decision string `json:"decision"` // granted, denied, timeout
		By       string `json:"by"`
	}
	UserQuestion struct {
		ID        string          `json:"id"`
		Questions json.RawMessage `json:"questions"`
		ExpiresAt time.Time       `json:"expires_at"`
	}
	Warning struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	Done struct {
		Response      string         `json:"response"`
		SessionID     string         `json:"session_id"`
		Model         string         `json:"model"`
		MessageCount  int            `json:"message_count"`
		DurationMS    int64          `json:"duration_ms"`
		ToolCalls     int            `json:"tool_calls"`
		Usage         Usage          `json:"usage"`
		SessionResume *SessionResume `json:"session_resume"`
		StopReason    string         `json:"stop_reason,omitempty"` // max_tokens: the answer was cut there
		*Council
	}
	// Council describes an answer of a council; nil for others.
	Council struct {
		QueryID       string          `json:"query_id"`
		AccuracyLevel string          `json:"accuracy_level"` // fast, balanced, high, maximum
		Confidence    string          `json:"confidence"`     // High, Medium, Uncertain
		CalloutType   string          `json:"callout_type,omitempty"`
		ModelsUsed    []string        `json:"models_used"`
		Options       []CouncilOption `json:"options,omitempty"` // where answers contradict each other: pick one
	}
	// CouncilOption is one of the answers that contradict each other.
	CouncilOption struct {
		N     int    `json:"n"` // from 1
		Model string `json:"model"`
		Text  string `json:"text"`
	}
	// Deliberation is how far a council is with its answer.
	Deliberation struct {
		QueryID       string         `json:"query_id"`
		AccuracyLevel string         `json:"accuracy_level"`
		Stage         string         `json:"stage"` // asking, comparing, rating, reviewing, revising
		Members       []Deliberating `json:"members"`
	}
	// Deliberating is a member of a council.
	Deliberating struct {
		Model string `json:"model"`
		State string `json:"state"` // asked, answered, failed, late
	}
	// Usage is what a turn's model calls took. CostUSD is nil when no price is known.
	Usage struct {
		InputTokens      int64    `json:"input_tokens"` // without those read from a cache or written to it
		OutputTokens     int64    `json:"output_tokens"`
		CacheReadTokens  int64    `json:"cache_read_tokens"`
		CacheWriteTokens int64    `json:"cache_write_tokens,omitempty"`
		CostUSD          *float64 `json:"cost_usd"`
	}
	// SessionResume is the first generation's debug record, nine fields.
	SessionResume struct {
		Method               string `json:"method"`
		SDKSessionValid      bool   `json:"sdk_session_valid"`
		SDKResumeAttempted   bool   `json:"sdk_resume_attempted"`
		ContextInjected      bool   `json:"context_injected"`
		MessagesInjected     int    `json:"messages_injected"`
		TokensEstimate       int    `json:"tokens_estimate"`
		PreviousMessageCount int    `json:"previous_message_count"`
		LoadedFromDisk       bool   `json:"loaded_from_disk"`
		CacheHit             bool   `json:"cache_hit"`
	}
	Aborted struct {
		SessionID       string `json:"session_id"`
		Message         string `json:"message"`
		PartialResponse string `json:"partial_response"`
	}
	// Failed is sent as "error".
	Failed struct {
		Code         string `json:"code"` // shutdown, interrupted, timeout, silence, provider, rate_limited, auth, busy, internal …
		Message      string `json:"message"`
		CanRetry     bool   `json:"can_retry"`
		RetryAfterMS int64  `json:"retry_after_ms"`
		SessionID    string `json:"session_id"`
	}
	MessageStop struct{}
	// Gap is sent by a replay that does not have the events from..to any more
	// (both inclusive, as event ids): read the transcript.
	Gap struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
)

// Answered returns how many members have answered.
func (d Deliberation) Answered() (n int) {
	for _, m := range d.Members {
		if m.State == "answered" {
			n++
		}
	}
	return n
}

func (Session) EventType() string            { return "session" }
func (UserMessage) EventType() string        { return "user_message" }
func (PromptMetadata) EventType() string     { return "prompt_metadata" }
func (Init) EventType() string               { return "init" }
func (ModelChosen) EventType() string        { return "model" }
func (TextDelta) EventType() string          { return "text" }
func (Thinking) EventType() string           { return "thinking" }
func (ToolUseStart) EventType() string       { return "tool_use_start" }
func (ToolResult) EventType() string         { return "tool_result" }
func (PermissionRequest) EventType() string  { return "permission_request" }
func (PermissionResolved) EventType() string { return "permission_resolved" }
func (UserQuestion) EventType() string       { return "user_question" }
func (Warning) EventType() string            { return "warning" }
func (Deliberation) EventType() string       { return "deliberation" }
func (Done) EventType() string               { return "done" }
func (Aborted) EventType() string            { return "aborted" }
func (Failed) EventType() string             { return "error" }
func (MessageStop) EventType() string        { return "message_stop" }
func (Gap) EventType() string                { return "gap" }

// Terminal reports whether e is one of done, aborted, error.
func Terminal(e Event) bool {
	switch e.(type) {
	case Done, Aborted, Failed:
		return true
	}
	return false
}

// EncodeEvent returns e's JSON with "type" as its first member, on one line.
func EncodeEvent(e Event) ([]byte, error) {
	switch e := e.(type) { // most events are pieces of an answer, mostly words
	case TextDelta:
		if isPlain(e.Content) {
			return encodePlain(e.EventType(), e.Content), nil
		}
	case Thinking:
		if isPlain(e.Content) {
			return encodePlain(e.EventType(), e.Content), nil
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(body)+24)
	out = append(out, `{"type":"`...)
	out = append(out, e.EventType()...)
	out = append(out, '"')
	if len(body) > 2 { // more than {}
		out = append(out, ',')
	}
	return append(out, body[1:]...), nil
}

// isPlain reports whether JSON, as encoding/json writes it, has s as it is.
func isPlain(s string) bool {
	for i, c := range s {
		switch c {
		case '"', '\\', '<', '>', '&', '\u2028', '\u2029':
			return false
		case utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if c < ' ' {
			return false
		}
	}
	return true
}

// encodePlain writes an event whose only member is a plain content.
func encodePlain(kind, content string) []byte {
	out := make([]byte, 0, len(kind)+len(content)+len(`{"type":"","content":""}`))
	out = append(append(out, `{"type":"`...), kind...)
	out = append(append(out, `","content":"`...), content...)
	return append(out, `"}`...)
}

// EncodedType returns the type of an event that EncodeEvent wrote; "" for other text.
func EncodedType(data []byte) string {
	const head = `{"type":"`
	if len(data) < len(head) || string(data[:len(head)]) != head {
		return ""
	}
	rest := data[len(head):]
	for i, c := range rest {
		if c == '"' {
			return string(rest[:i])
		}
	}
	return ""
}
