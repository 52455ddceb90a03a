package anthropictest

import (
	"encoding/json"
	"maps"
	"slices"
)

// Output is the parameter output_config
// (https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
type Output struct {
	Format *Format `json:"format"`
	Effort string  `json:"effort"`
}

// A Format is the form of an answer.
type Format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

func (s *Server) checkOutput(m *Message) *refusal {
	if m.Output == nil || m.Output.Format == nil {
		return nil
	}
	f := m.Output.Format
	switch {
	case s.o.NoFormat:
		return invalid("output_config.format: Structured outputs are not supported on this model")
	case f.Type != "json_schema":
		return invalid("output_config.format.type: Input should be 'json_schema'")
	}
	var schema map[string]json.RawMessage
	if json.Unmarshal(f.Schema, &schema) != nil {
		return invalid("output_config.format.schema: Input should be a valid dictionary")
	}
	if what := plainSchema(schema); what != "" {
		return invalid("output_config.format.schema: %s", what)
	}
	return nil
}

// bounds are keywords that the API does not take.
var bounds = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems", "uniqueItems"}

// plainSchema returns what of a schema the API does not take; "" for nothing.
func plainSchema(schema map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if slices.Contains(bounds, name) {
			return "For '" + string(schema["type"]) + "' type, property '" + name + "' is not supported"
		}
	}
	if string(schema["type"]) == `"object"` && string(schema["additionalProperties"]) != "false" {
		return "For 'object' type, 'additionalProperties' must be explicitly set to false"
	}
	var inner map[string]map[string]json.RawMessage
	if schema["properties"] != nil && json.Unmarshal(schema["properties"], &inner) != nil {
		return "'properties' must be a dictionary of schemas"
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		if what := plainSchema(inner[name]); what != "" {
			return what
		}
	}
	var items map[string]json.RawMessage
	if schema["items"] != nil && json.Unmarshal(schema["items"], &items) == nil {
		return plainSchema(items)
	}
	return ""
}
