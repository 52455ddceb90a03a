package responses

import (
	"encoding/json"
	"fmt"
	"slices"

	"gatehouse/web"
	"gatehouse/web/openai/conversation"
	"gatehouse/web/openai/params"
	"gatehouse/web/openai/refusal"
)

// Bounds of a request.
const (
	maxName          = 1 << 10 // bytes of a model's name, and of an id
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// A request is what is honoured of a body. What is stored of it has a name in JSON.
type request struct {
	Model        string            `json:"model"`
	Instructions string            `json:"instructions,omitempty"`
	Input        []item            `json:"input"`
	System       string            `json:"system,omitempty"` // of the items up to here: earlier responses' as well
	Temperature  *float64          `json:"temperature,omitempty"`
	MaxTokens    int               `json:"max_output_tokens,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Truncation   string            `json:"truncation,omitempty"`
	Background   bool              `json:"background,omitempty"`
	Store        bool              `json:"store"`
	Once         bool              `json:"once,omitempty"` // it has an Idempotency-Key: its client may come back

	Stream   bool   `json:"-"`
	Previous string `json:"-"`
}

// lasting reports whether the run goes on when its client goes away. What is not stored has
// no id by which it could be stopped.
func (q *request) lasting() bool { return q.Background || q.Once && q.Store }

// parse reads a body; null is the same as absent; ignored holds the names that
// are no parameter of OpenAI's.
func parse(raw []byte) (q request, ignored []string, err error) {
	q.Store, q.Truncation = true, "disabled"
	fields, ignored, err := params.Spec{
		Readers: map[string]func(json.RawMessage) error{
			"model": params.String("model", maxName, &q.Model), "input": q.readInput, "instructions": params.String("instructions", conversation.MaxText, &q.Instructions),
			"previous_response_id": params.String("previous_response_id", maxName, &q.Previous), "stream": params.Bool("stream", &q.Stream),
			"stream_options": readStreamOptions, "background": params.Bool("background", &q.Background), "store": params.Bool("store", &q.Store),
			"temperature": params.Temperature(&q.Temperature), "max_output_tokens": params.Count("max_output_tokens", &q.MaxTokens),
			"metadata": q.readMetadata, "truncation": q.readTruncation, "include": readInclude, "text": readText, "reasoning": readReasoning,
		},
		Labels: labels, Neutral: neutral,
	}.Read(raw)
	if err != nil {
		return q, nil, err
	}
	return q, ignored, q.check(fields)
}

// labels are parameters that change nothing about an answer.
var labels = map[string]bool{"user": true, "safety_identifier": true, "prompt_cache_key": true, "prompt_cache_retention": true,
	"prompt_cache_options": true, "parallel_tool_calls": true}

// neutral are the parameters that are not honoured, each with the values that ask
// for nothing.
var neutral = map[string][]string{
	"tools": {`[]`}, "tool_choice": {`"none"`, `"auto"`}, "top_p": {`1`}, "top_logprobs": {`0`}, "service_tier": {`"auto"`, `"default"`},
	"max_tool_calls": {``}, "conversation": {``}, "prompt": {``}, "moderation": {``}, "context_management": {`[]`}, "image": {`{}`}, "access_programs": {``},
}

func (q *request) check(fields map[string]json.RawMessage) error {
	switch {
	case q.Model == "":
		return refusal.Missing("model")
	case fields["input"] == nil:
		return refusal.Missing("input")
	case q.Background && !q.Store:
		return refusal.New(web.Invalid, "invalid_parameter_combination", "background", "Invalid 'background': it needs 'store', since the answer is fetched later.")
	case fields["stream_options"] != nil && !q.Stream:
		return refusal.New(web.Invalid, "invalid_parameter_combination", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return nil
}

func readStreamOptions(v json.RawMessage) error {
	var o struct {
		Obfuscation bool `json:"include_obfuscation"`
	}
	if json.Unmarshal(v, &o) != nil {
		return refusal.BadType("stream_options", "an object")
	}
	return params.NoObfuscation(o.Obfuscation)
}

func (q *request) readTruncation(v json.RawMessage) error {
	if json.Unmarshal(v, &q.Truncation) != nil || q.Truncation != "auto" && q.Truncation != "disabled" {
		return refusal.New(web.Invalid, "invalid_value", "truncation", "Invalid value for 'truncation': supported are 'auto' and 'disabled'.")
	}
	return nil
}

func (q *request) readMetadata(v json.RawMessage) error {
	if json.Unmarshal(v, &q.Metadata) != nil {
		return refusal.BadType("metadata", "an object with strings as values")
	}
	if len(q.Metadata) > maxMetadata {
		return refusal.New(web.Invalid, "object_above_max_properties", "metadata", fmt.Sprintf("Invalid 'metadata': at most %d pairs.", maxMetadata))
	}
	for k, v := range q.Metadata {
		if len(k) > maxMetadataKey || len(v) > maxMetadataValue {
			return refusal.New(web.Invalid, "string_above_max_length", "metadata", fmt.Sprintf("Invalid 'metadata': keys are at most %d bytes, values %d.", maxMetadataKey, maxMetadataValue))
		}
	}
	return nil
}

// includable are the values of include that add to items which are never there, or
// that the list of input items has.
var includable = []string{"web_search_call.action.sources", "code_interpreter_call.outputs", "computer_call_output.output.image_url",
	"file_search_call.results", "message.input_image.image_url", "reasoning.encrypted_content"}

func readInclude(v json.RawMessage) error {
	var names []string
	if json.Unmarshal(v, &names) != nil {
		return refusal.BadType("include", "an array of strings")
	}
	for i, name := range names {
		if !slices.Contains(includable, name) {
			return refusal.Unsupported(fmt.Sprintf("include[%d]", i), "'%s' is not supported here")
		}
	}
	return nil
}

// members refuses those members of the object name that are not neutral.
func members(name string, v json.RawMessage, neutral map[string][]string) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(v, &fields) != nil {
		return refusal.BadType(name, "an object")
	}
	for member, values := range neutral {
		if given := fields[member]; given != nil && string(given) != "null" {
			if err := params.UnlessNeutral(name+"."+member, given, values); err != nil {
				return err
			}
		}
	}
	return nil
}

func readText(v json.RawMessage) error {
	return members("text", v, map[string][]string{"format": {`{"type":"text"}`}, "verbosity": {`"medium"`}})
}

func readReasoning(v json.RawMessage) error {
	return members("reasoning", v, map[string][]string{"effort": {`"medium"`}, "summary": {}, "generate_summary": {}})
}
