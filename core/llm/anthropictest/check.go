package anthropictest

import (
	"bytes"
	"encoding/json"
	"mime"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// A Message is a request to /v1/messages.
type Message struct {
	Model     string    `json:"model"`
	MaxTokens *int      `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	System    Content   `json:"system"`
	Messages  []Turn    `json:"messages"`
	Tools     []Tool    `json:"tools"`
	Choice    *Choice   `json:"tool_choice"`
	Thinking  *Thinking `json:"thinking"`
	Output    *Output   `json:"output_config"`
}

// A Turn is one message of the conversation.
type Turn struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// A Content is a list of blocks; a plain string is read as one text block.
type Content []Block

// A Block is one content block with the fields of all its types.
type Block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      Content         `json:"content"`
	IsError      bool            `json:"is_error"`
	Source       *Source         `json:"source"`
	Title        string          `json:"title"`
	CacheControl *CacheControl   `json:"cache_control"`
	Raw          json.RawMessage `json:"-"` // content of a web_search_tool_result
}

// A Source is what an image or document block shows.
type Source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// A CacheControl marks a point up to which the prompt is cached.
type CacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

// A Tool is one offered tool.
type Tool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	MaxUses      *int            `json:"max_uses"`
	Allowed      []string        `json:"allowed_domains"`
	Blocked      []string        `json:"blocked_domains"`
	CacheControl *CacheControl   `json:"cache_control"`
}

// A Choice reports how tools may be used.
type Choice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// Thinking is the parameter of that name.
type Thinking struct {
	Type         string `json:"type"`
	BudgetTokens *int   `json:"budget_tokens"`
	Display      string `json:"display"`
}

// UnmarshalJSON reads a string or a list of blocks.
func (c *Content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = Content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(b, (*[]Block)(c))
}

// parameters are the request fields that the API reference names.
var parameters = strings.Fields(`cache_control container context_management inference_geo max_tokens messages
	metadata model output_config service_tier stop_sequences stream system temperature thinking tool_choice tools
	top_k top_p`)

// check parses body into m and holds it against the documented rules.
func (s *Server) check(contentType string, body []byte, m *Message) *refusal {
	if kind, _, _ := mime.ParseMediaType(contentType); kind != "application/json" {
		return &refusal{415, "invalid_request_error", "Content-Type must be application/json"}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return invalid("The request body is not valid JSON")
	}
	for name := range fields {
		if !slices.Contains(parameters, name) {
			return invalid("%s: Extra inputs are not permitted", name)
		}
	}
	if err := json.Unmarshal(body, m); err != nil {
		return invalid("%s", err.Error())
	}
	rules := []func(*Message) *refusal{s.checkHead, s.checkThinking, s.checkOutput, s.checkTools, checkTurns, s.checkMedia, checkPairs, s.checkThought, checkCache, checkEnd}
	for _, rule := range rules {
		if bad := rule(m); bad != nil {
			return bad
		}
	}
	return nil
}

func (s *Server) checkHead(m *Message) *refusal {
	switch {
	case m.Model == "":
		return invalid("model: Field required")
	case m.MaxTokens == nil:
		return invalid("max_tokens: Field required")
	case *m.MaxTokens < 0:
		return invalid("max_tokens: Input should be greater than or equal to 0")
	case !slices.Contains(s.o.Models, m.Model):
		return &refusal{404, "not_found_error", "model: " + m.Model}
	case *m.MaxTokens > s.o.MaxTokens:
		return invalid("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", *m.MaxTokens, s.o.MaxTokens, m.Model)
	case m.Messages == nil:
		return invalid("messages: Field required")
	case len(m.Messages) == 0:
		return invalid("messages: at least one message is required")
	}
	for i, b := range m.System {
		if b.Type != "text" || b.Text == "" {
			return invalid("system.%d: text content blocks must be non-empty", i)
		}
	}
	return nil
}

func (s *Server) checkThinking(m *Message) *refusal {
	t := m.Thinking
	switch {
	case t == nil:
		return nil
	case s.o.NoThought:
		return invalid("adaptive thinking is not supported on this model")
	case !slices.Contains([]string{"adaptive", "enabled", "disabled"}, t.Type):
		return invalid("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", t.Type)
	case t.Display != "" && t.Display != "summarized" && t.Display != "omitted":
		return invalid("thinking.%s.display: Input should be 'summarized' or 'omitted'", t.Type)
	case t.Type == "enabled" && (t.BudgetTokens == nil || *t.BudgetTokens < 1024):
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case t.Type == "enabled" && *t.BudgetTokens >= *m.MaxTokens:
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case t.Type == "adaptive" && t.BudgetTokens != nil:
		return invalid("thinking.adaptive.budget_tokens: Extra inputs are not permitted")
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func (s *Server) checkTools(m *Message) *refusal {
	seen := map[string]bool{}
	for i, t := range m.Tools {
		if !toolName.MatchString(t.Name) {
			return invalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		}
		if seen[t.Name] {
			return invalid("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		if t.Type != "" && t.Type != "custom" {
			if bad := s.checkSearch(i, &t); bad != nil {
				return bad
			}
			continue
		}
		var schema struct {
			Type string `json:"type"`
		}
		if t.InputSchema == nil {
			return invalid("tools.%d.custom.input_schema: Field required", i)
		}
		if json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object" {
			return invalid("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
	}
	if m.Choice != nil && (len(m.Tools) == 0 || !slices.Contains([]string{"auto", "any", "tool", "none"}, m.Choice.Type)) {
		return invalid("tool_choice may only be specified while providing tools")
	}
	return nil
}

var callID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func checkTurns(m *Message) *refusal {
	for i := range m.Messages {
		t := &m.Messages[i]
		switch {
		case t.Role == "system":
			return invalid(`messages: Unexpected role "system". The Messages API accepts a top-level ` + "`system`" + ` parameter, not "system" as an input message role.`)
		case t.Role != "user" && t.Role != "assistant":
			return invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case i == 0 && t.Role != "user":
			return invalid("messages: first message must use the \"user\" role")
		case len(t.Content) == 0:
			return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		for j := range t.Content {
			if bad := checkBlock(i, j, t); bad != nil {
				return bad
			}
		}
		if last := &t.Content[len(t.Content)-1]; t.Role == "assistant" && (last.Type == "thinking" || last.Type == "redacted_thinking") {
			return invalid("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
		}
	}
	return nil
}

// checkBlock checks block j of message i on its own.
func checkBlock(i, j int, t *Turn) *refusal {
	b := &t.Content[j]
	allowed := map[string][]string{"user": {"text", "image", "document", "tool_result"}, "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"}}[t.Role]
	switch {
	case !slices.Contains(allowed, b.Type):
		return invalid("messages.%d.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, j, b.Type)
	case b.Type == "server_tool_use", b.Type == "web_search_tool_result":
		return checkServerBlock(i, j, t)
	case b.Type == "text" && b.Text == "":
		return invalid("messages: text content blocks must be non-empty")
	case b.Type == "text" && strings.TrimSpace(b.Text) == "":
		return invalid("messages: text content blocks must contain non-whitespace text")
	case b.Type == "thinking" && b.Signature == "":
		return invalid("messages.%d.content.%d.thinking.signature: Field required", i, j)
	case b.Type == "thinking" && !strings.HasPrefix(b.Signature, Signed):
		return invalid("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
	case b.Type == "tool_use" && !callID.MatchString(b.ID):
		return invalid("messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", i, j)
	case b.Type == "tool_use" && !toolName.MatchString(b.Name):
		return invalid("messages.%d.content.%d.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i, j)
	case b.Type == "tool_use" && !bytes.HasPrefix(bytes.TrimSpace(b.Input), []byte("{")):
		return invalid("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, j)
	case b.Type == "tool_result" && b.ToolUseID == "":
		return invalid("messages.%d.content.%d.tool_result.tool_use_id: Field required", i, j)
	case b.Type == "tool_result" && j > 0 && t.Content[j-1].Type != "tool_result":
		// "Tool result blocks must come first in the content array", the tool use guide
		// states.
		return invalid("messages.%d.content.%d: `tool_result` blocks must come before any other content", i, j)
	}
	return nil
}

// checkPairs holds calls and results together. Consecutive messages of one
// role count as one, as the reference states.
func checkPairs(m *Message) *refusal {
	var open, ids []string
	role, used := "", false
	for i := range m.Messages {
		t := &m.Messages[i]
		if t.Role == "assistant" && t.Role != role && len(open) > 0 {
			return unanswered(i, open)
		}
		behind := slices.Clone(open)
		for j := range t.Content {
			b := &t.Content[j]
			switch b.Type {
			case "tool_use":
				used = true
				if slices.Contains(ids, b.ID) {
					return invalid("messages: `tool_use` ids must be unique")
				}
				ids, open = append(ids, b.ID), append(open, b.ID)
			case "tool_result":
				at := slices.Index(open, b.ToolUseID)
				if at < 0 {
					return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
				}
				open = slices.Delete(open, at, at+1)
			}
		}
		if t.Role == "user" && len(behind) > 0 && len(open) > 0 {
			return unanswered(i-1, open)
		}
		role = t.Role
	}
	if len(open) > 0 {
		return unanswered(len(m.Messages)-1, open)
	}
	if used && len(m.Tools) == 0 {
		return invalid("Requests which include `tool_use` or `tool_result` blocks must define tools.")
	}
	return nil
}

func unanswered(i int, open []string) *refusal {
	sort.Strings(open)
	return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(open, ", "))
}

// checkCache allows four cache points, none on thinking.
func checkCache(m *Message) *refusal {
	var points []*CacheControl
	for _, t := range m.Tools {
		points = append(points, t.CacheControl)
	}
	for _, b := range m.System {
		points = append(points, b.CacheControl)
	}
	for i, t := range m.Messages {
		for j, b := range t.Content {
			if b.CacheControl != nil && (b.Type == "thinking" || b.Type == "redacted_thinking") {
				return invalid("messages.%d.content.%d.%s.cache_control: Extra inputs are not permitted", i, j, b.Type)
			}
			points = append(points, b.CacheControl)
		}
	}
	n := 0
	for _, p := range points {
		if p == nil {
			continue
		}
		if n++; p.Type != "ephemeral" {
			return invalid("cache_control.type: Input should be 'ephemeral'")
		}
	}
	if n > 4 {
		return invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}

// checkEnd refuses the beginning of an answer, as the newer models do; a turn
// that was paused is no such beginning.
func checkEnd(m *Message) *refusal {
	last := &m.Messages[len(m.Messages)-1]
	paused := m.searches() && slices.ContainsFunc(last.Content, func(b Block) bool { return b.Type == "server_tool_use" })
	if last.Role == "assistant" && !paused {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

// Check holds a request's body against the documented rules, without a
// server: "" or the message of the refusal.
func Check(body []byte) string {
	s := &Server{o: Options{}.defaults()}
	if bad := s.check("application/json", body, &Message{}); bad != nil {
		return bad.message
	}
	return ""
}
