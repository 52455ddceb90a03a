package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gatehouse/core"
	"gatehouse/web"
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
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return q, nil, refuse(web.Invalid, "", "", "The body must be a JSON object.")
	}
	maps.DeleteFunc(fields, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	readers := map[string]func(json.RawMessage) error{
		"model": q.readModel, "messages": q.readMessages, "stream": q.readStream, "stream_options": q.readStreamOptions,
		"temperature": q.readTemperature, "max_tokens": q.readMaxTokens("max_tokens"),
		"max_completion_tokens": q.readMaxTokens("max_completion_tokens"), "stop": q.readStop,
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch read, honoured := readers[name]; {
		case honoured:
			err = read(fields[name])
		case labels[name]:
		case neutral[name] != nil:
			err = unlessNeutral(name, fields[name])
		default:
			ignored = append(ignored, name)
		}
		if err != nil {
			return q, nil, err
		}
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

func unlessNeutral(name string, value json.RawMessage) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return badType(name, "JSON")
	}
	plain, err := json.Marshal(v) // 1.0 is 1
	if err == nil && slices.Contains(neutral[name], string(plain)) {
		return nil
	}
	why := "Unsupported parameter: '" + name + "' is not supported here."
	if name == "tools" || name == "functions" {
		why = "Unsupported parameter: '" + name + "' is not supported here: the tools are the gateway's own."
	}
	return refuse(web.UnsupportedField, "unsupported_parameter", name, why)
}

func (q *request) check(fields map[string]json.RawMessage) error {
	switch {
	case q.Model == "":
		return refuse(web.Invalid, "missing_required_parameter", "model", "Missing required parameter: 'model'.")
	case fields["messages"] == nil:
		return refuse(web.Invalid, "missing_required_parameter", "messages", "Missing required parameter: 'messages'.")
	case fields["max_tokens"] != nil && fields["max_completion_tokens"] != nil:
		return refuse(web.Invalid, "invalid_parameter_combination", "max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case fields["stream_options"] != nil && !q.Stream:
		return refuse(web.Invalid, "invalid_parameter_combination", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return nil
}

func (q *request) readModel(v json.RawMessage) error {
	if json.Unmarshal(v, &q.Model) != nil {
		return badType("model", "a string")
	}
	return nil
}

func (q *request) readStream(v json.RawMessage) error {
	if json.Unmarshal(v, &q.Stream) != nil {
		return badType("stream", "a boolean")
	}
	return nil
}

func (q *request) readStreamOptions(v json.RawMessage) error {
	var o struct {
		Usage       bool `json:"include_usage"`
		Obfuscation bool `json:"include_obfuscation"` // a padding of chunks that hides their lengths
	}
	if json.Unmarshal(v, &o) != nil {
		return badType("stream_options", "an object")
	}
	if o.Obfuscation {
		return refuse(web.UnsupportedField, "unsupported_parameter", "stream_options.include_obfuscation",
			"Unsupported parameter: 'stream_options.include_obfuscation' is not supported here.")
	}
	q.Usage = o.Usage
	return nil
}

func (q *request) readTemperature(v json.RawMessage) error {
	if json.Unmarshal(v, &q.Temperature) != nil {
		return badType("temperature", "a number")
	}
	if *q.Temperature < 0 || *q.Temperature > 2 {
		return refuse(web.Invalid, "invalid_value", "temperature", "Invalid 'temperature': expected a value from 0 to 2.")
	}
	return nil
}

func (q *request) readMaxTokens(name string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if json.Unmarshal(v, &q.MaxTokens) != nil {
			return badType(name, "an integer")
		}
		if q.MaxTokens < 1 {
			return refuse(web.Invalid, "integer_below_min_value", name, fmt.Sprintf("Invalid '%s': expected a value >= 1.", name))
		}
		return nil
	}
}

func (q *request) readStop(v json.RawMessage) error {
	var one string
	if json.Unmarshal(v, &one) == nil {
		q.Stop = []string{one}
	} else if json.Unmarshal(v, &q.Stop) != nil {
		return badType("stop", "a string or an array of strings")
	}
	if len(q.Stop) > maxStops {
		return refuse(web.Invalid, "array_above_max_length", "stop", fmt.Sprintf("Invalid 'stop': at most %d sequences.", maxStops))
	}
	for _, s := range q.Stop {
		if s == "" || len(s) > maxStop {
			return refuse(web.Invalid, "invalid_value", "stop", fmt.Sprintf("Invalid 'stop': a sequence is of 1 to %d bytes.", maxStop))
		}
	}
	return nil
}
