// Package params reads the parameters of a request of OpenAI's API, and refuses
// what is not supported by name.
package params

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gatehouse/web"
	"gatehouse/web/openai/refusal"
)

// A Spec is what an endpoint knows of its parameters.
type Spec struct {
	Readers map[string]func(json.RawMessage) error // of those that are honoured
	Labels  map[string]bool                        // those that change nothing about an answer
	// Neutral are the parameters that are not honoured, each with the values that
	// ask for nothing, as compact JSON.
	Neutral map[string][]string
}

// Read reads a body by s; null is the same as absent. fields has those that are
// there, ignored the names that are no parameter.
func (s Spec) Read(raw []byte) (fields map[string]json.RawMessage, ignored []string, err error) {
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, nil, refusal.New(web.Invalid, "", "", "The body must be a JSON object.")
	}
	maps.DeleteFunc(fields, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch read := s.Readers[name]; {
		case read != nil:
			err = read(fields[name])
		case s.Labels[name]:
		case s.Neutral[name] != nil:
			err = UnlessNeutral(name, fields[name], s.Neutral[name])
		default:
			ignored = append(ignored, name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return fields, ignored, nil
}

// UnlessNeutral refuses the parameter name unless its value is one of neutral.
func UnlessNeutral(name string, value json.RawMessage, neutral []string) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return refusal.BadType(name, "JSON")
	}
	plain, err := json.Marshal(v) // 1.0 is 1
	if err == nil && slices.Contains(neutral, string(plain)) {
		return nil
	}
	if name == "tools" || name == "functions" {
		return refusal.Unsupported(name, "'%s' is not supported here: the tools are the gateway's own")
	}
	return refusal.Unsupported(name, "'%s' is not supported here")
}

// Bool returns a reader into dest.
func Bool(name string, dest *bool) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if json.Unmarshal(v, dest) != nil {
			return refusal.BadType(name, "a boolean")
		}
		return nil
	}
}

// String returns a reader into dest of at most most bytes.
func String(name string, most int, dest *string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if json.Unmarshal(v, dest) != nil {
			return refusal.BadType(name, "a string")
		}
		if len(*dest) > most {
			return refusal.New(web.Invalid, "string_above_max_length", name, fmt.Sprintf("Invalid '%s': over %d bytes.", name, most))
		}
		return nil
	}
}

// Count returns a reader into dest of a number that is at least 1.
func Count(name string, dest *int) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if json.Unmarshal(v, dest) != nil {
			return refusal.BadType(name, "an integer")
		}
		if *dest < 1 {
			return refusal.New(web.Invalid, "integer_below_min_value", name, fmt.Sprintf("Invalid '%s': expected a value >= 1.", name))
		}
		return nil
	}
}

// Temperature returns a reader into dest.
func Temperature(dest **float64) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if json.Unmarshal(v, dest) != nil {
			return refusal.BadType("temperature", "a number")
		}
		if **dest < 0 || **dest > 2 {
			return refusal.New(web.Invalid, "invalid_value", "temperature", "Invalid 'temperature': expected a value from 0 to 2.")
		}
		return nil
	}
}

// NoObfuscation refuses a padding of chunks that hides their lengths.
func NoObfuscation(asked bool) error {
	if !asked {
		return nil
	}
	return refusal.Unsupported("stream_options.include_obfuscation", "'%s' is not supported here")
}
