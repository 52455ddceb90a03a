package openai

import (
	"encoding/json"
	"fmt"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/openai/params"
	"gatehouse/web/openai/refusal"
)

// A request is what is honoured of a body.
type request struct {
	Model       string
	Stream      bool
	Usage       bool // stream_options.include_usage
	Temperature *float64
	MaxTokens   int
	Stop        []string
	System      string
	Before      []core.Said
	Last        core.Said
}

// parse reads a body; null is the same as absent; ignored holds the names that
// are no parameter of OpenAI's.
func parse(raw []byte) (q request, ignored []string, err error) {
	fields, ignored, err := params.Spec{
		Readers: map[string]func(json.RawMessage) error{
			"model": params.String("model", maxModel, &q.Model), "messages": q.readMessages, "stream": params.Bool("stream", &q.Stream), "stream_options": q.readStreamOptions,
			"temperature": params.Temperature(&q.Temperature), "max_tokens": params.Count("max_tokens", &q.MaxTokens),
			"max_completion_tokens": params.Count("max_completion_tokens", &q.MaxTokens), "stop": q.readStop,
		},
		Labels: labels, Neutral: neutral,
	}.Read(raw)
	if err != nil {
		return q, nil, err
	}
	return q, ignored, q.check(fields)
}

// labels are parameters that change nothing about an answer.
var labels = map[string]bool{"user": true, "metadata": true, "safety_identifier": true, "prompt_cache_key": true,
	"prompt_cache_retention": true, "store": true, "parallel_tool_calls": true}

// neutral are the parameters that are not honoured, each with the values that
// ask for nothing, as compact JSON.
var neutral = map[string][]string{
	"tools": {`[]`}, "functions": {`[]`}, "tool_choice": {`"none"`, `"auto"`}, "function_call": {`"none"`, `"auto"`},
	"n": {`1`}, "logprobs": {`false`}, "top_logprobs": {`0`}, "logit_bias": {`{}`}, "top_p": {`1`},
	"presence_penalty": {`0`}, "frequency_penalty": {`0`}, "response_format": {`{"type":"text"}`}, "modalities": {`["text"]`},
	"service_tier": {`"auto"`, `"default"`}, "reasoning_effort": {`"medium"`}, "verbosity": {`"medium"`},
	"audio": {``}, "prediction": {``}, "seed": {``}, "web_search_options": {``}, "moderation": {``},
}

func (q *request) check(fields map[string]json.RawMessage) error {
	switch {
	case q.Model == "":
		return refusal.Missing("model")
	case fields["messages"] == nil:
		return refusal.Missing("messages")
	case fields["max_tokens"] != nil && fields["max_completion_tokens"] != nil:
		return refusal.New(web.Invalid, "invalid_parameter_combination", "max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case fields["stream_options"] != nil && !q.Stream:
		return refusal.New(web.Invalid, "invalid_parameter_combination", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return nil
}

func (q *request) readStreamOptions(v json.RawMessage) error {
	var o struct {
		Usage       bool `json:"include_usage"`
		Obfuscation bool `json:"include_obfuscation"` // a padding of chunks that hides their lengths
	}
	if json.Unmarshal(v, &o) != nil {
		return refusal.BadType("stream_options", "an object")
	}
	q.Usage = o.Usage
	return params.NoObfuscation(o.Obfuscation)
}

func (q *request) readStop(v json.RawMessage) error {
	var one string
	if json.Unmarshal(v, &one) == nil {
		q.Stop = []string{one}
	} else if json.Unmarshal(v, &q.Stop) != nil {
		return refusal.BadType("stop", "a string or an array of strings")
	}
	if len(q.Stop) > maxStops {
		return refusal.New(web.Invalid, "array_above_max_length", "stop", fmt.Sprintf("Invalid 'stop': at most %d sequences.", maxStops))
	}
	for _, s := range q.Stop {
		if s == "" || len(s) > maxStop {
			return refusal.New(web.Invalid, "invalid_value", "stop", fmt.Sprintf("Invalid 'stop': a sequence is of 1 to %d bytes.", maxStop))
		}
	}
	return nil
}
