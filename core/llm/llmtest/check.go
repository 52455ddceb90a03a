package llmtest

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// A Message is a message of a request.
type Message struct {
	Role       string
	Content    string // text parts joined
	Parts      []Part // of a user message whose content is no plain string
	ToolCallID string
	ToolCalls  []ToolCall
}

// A ToolCall is a call in an assistant message.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

type chatRequest struct {
	Model         string         `json:"model"`
	RawMessages   []rawMessage   `json:"messages"`
	Messages      []Message      `json:"-"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	MaxTokens     *int           `json:"max_tokens"`
	MaxCompletion *int           `json:"max_completion_tokens"`
	Tools         []tool         `json:"tools"`
	Format        *format        `json:"response_format"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func (o *streamOptions) usage() bool { return o != nil && o.IncludeUsage }

// A Part is one piece of a user message.
type Part struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image *Image `json:"image_url"`
	File  *File  `json:"file"`
}

// An Image is an image_url part's picture; URL holds the bytes themselves.
type Image struct {
	URL    string `json:"url"`
	Detail string `json:"detail"`
}

// A File is a file part's document.
type File struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

type rawMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []ToolCall      `json:"tool_calls"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// A refusal is an error answer.
type refusal struct {
	status int
	err    Error
}

// invalid returns an invalid_request_error, the type of all the fake's own refusals.
func invalid(status int, message, param, code string) *refusal {
	r := &refusal{status, Error{Message: message, Type: "invalid_request_error"}}
	if param != "" {
		r.err.Param = param
	}
	if code != "" {
		r.err.Code = code
	}
	return r
}

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	json.NewEncoder(w).Encode(map[string]any{"error": r.err})
}

// parameters are the request fields that the API reference names.
var parameters = strings.Fields(`audio frequency_penalty function_call functions logit_bias logprobs
	max_completion_tokens max_tokens messages metadata modalities model n parallel_tool_calls prediction
	presence_penalty prompt_cache_key reasoning_effort response_format safety_identifier seed service_tier
	stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
	web_search_options`)

// check parses and checks a chat request.
func (s *Server) check(contentType string, body []byte) (*chatRequest, *refusal) {
	if kind, _, _ := mime.ParseMediaType(contentType); kind != "application/json" {
		return nil, invalid(415, fmt.Sprintf("Unsupported media type: %q. Use 'application/json'.", contentType), "", "unsupported_media_type")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, invalid(400, "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "+
			"your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)", "", "")
	}
	for name := range fields {
		if !slices.Contains(parameters, name) {
			return nil, invalid(400, fmt.Sprintf("Unknown parameter: '%s'.", name), name, "unknown_parameter")
		}
	}
	var req chatRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, invalid(400, "Invalid type: "+err.Error(), "", "invalid_type")
	}
	for _, rule := range []func(*chatRequest) *refusal{s.checkModel, checkLimits, checkTools, s.checkFormat, s.checkMessages, checkOrder} {
		if bad := rule(&req); bad != nil {
			return &req, bad
		}
	}
	return &req, nil
}

func (s *Server) checkModel(r *chatRequest) *refusal {
	if r.Model == "" {
		return invalid(400, "you must provide a model parameter", "", "")
	}
	if !slices.Contains(s.o.Models, r.Model) {
		return invalid(404, fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", r.Model), "", "model_not_found")
	}
	return nil
}

func checkLimits(r *chatRequest) *refusal {
	for _, l := range []struct {
		name  string
		value *int
	}{{"max_tokens", r.MaxTokens}, {"max_completion_tokens", r.MaxCompletion}} {
		if l.value != nil && *l.value < 1 {
			return invalid(400, fmt.Sprintf("Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.",
				l.name, *l.value), l.name, "integer_below_min_value")
		}
	}
	if r.MaxTokens != nil && r.MaxCompletion != nil {
		return invalid(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
			"max_tokens", "invalid_parameter_combination")
	}
	if r.StreamOptions != nil && !r.Stream {
		return invalid(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options", "")
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func checkTools(r *chatRequest) *refusal {
	for i, t := range r.Tools {
		param := fmt.Sprintf("tools[%d].function.name", i)
		if t.Type != "function" {
			return invalid(400, fmt.Sprintf("Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type),
				fmt.Sprintf("tools[%d].type", i), "invalid_value")
		}
		if !toolName.MatchString(t.Function.Name) {
			return invalid(400, fmt.Sprintf("Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param),
				param, "invalid_value")
		}
		var schema struct {
			Type string `json:"type"`
		}
		if len(t.Function.Parameters) > 0 && (json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object") {
			return invalid(400, fmt.Sprintf("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.",
				t.Function.Name, schema.Type), fmt.Sprintf("tools[%d].function.parameters", i), "invalid_function_parameters")
		}
	}
	return nil
}

var roles = []string{"system", "assistant", "user", "function", "tool", "developer"}

func (s *Server) checkMessages(r *chatRequest) *refusal {
	if r.RawMessages == nil {
		return invalid(400, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
	}
	if len(r.RawMessages) == 0 {
		return invalid(400, "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			"messages", "empty_array")
	}
	for i, m := range r.RawMessages {
		at := fmt.Sprintf("messages[%d]", i)
		if !slices.Contains(roles, m.Role) {
			return invalid(400, fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
				m.Role), at+".role", "invalid_value")
		}
		text, parts, ok := content(m.Content)
		if bad := s.checkParts(at, m.Role, parts); bad != nil {
			return bad
		}
		if !ok && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
			return invalid(400, "Invalid value for 'content': expected a string, got null.", fmt.Sprintf("messages.[%d].content", i), "")
		}
		if m.Role == "tool" && m.ToolCallID == "" {
			return invalid(400, fmt.Sprintf("Missing required parameter: '%s.tool_call_id'.", at), at+".tool_call_id", "missing_required_parameter")
		}
		if bad := checkCalls(at, m.ToolCalls); bad != nil {
			return bad
		}
		r.Messages = append(r.Messages, Message{Role: m.Role, Content: text, Parts: parts, ToolCallID: m.ToolCallID, ToolCalls: m.ToolCalls})
	}
	return nil
}

func checkCalls(at string, calls []ToolCall) *refusal {
	for i, c := range calls {
		param := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		missing := ""
		switch {
		case c.ID == "":
			missing = ".id"
		case c.Type != "function":
			missing = ".type"
		case c.Function.Name == "":
			missing = ".function.name"
		case c.Function.Arguments == nil:
			missing = ".function.arguments"
		}
		if missing != "" {
			return invalid(400, fmt.Sprintf("Missing required parameter: '%s%s'.", param, missing), param+missing, "missing_required_parameter")
		}
	}
	return nil
}

// checkOrder holds tool messages directly behind the calls they answer.
func checkOrder(r *chatRequest) *refusal {
	var open []string
	unanswered := func(i int) *refusal {
		return invalid(400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each "+
			"'tool_call_id'. The following tool_call_ids did not have response messages: "+strings.Join(open, ", "),
			fmt.Sprintf("messages.[%d].role", i), "")
	}
	behind := false // a call or its answers are right in front
	for i, m := range r.Messages {
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if !behind || at < 0 {
				return invalid(400, "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
					fmt.Sprintf("messages.[%d].role", i), "")
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return unanswered(i)
		}
		behind = len(m.ToolCalls) > 0
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return unanswered(len(r.Messages))
	}
	return nil
}
