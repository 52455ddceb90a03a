package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A format is the parameter response_format
// (https://platform.openai.com/docs/guides/structured-outputs).
type format struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// A schema is the part of JSON Schema that a strict format is held against.
type schema struct {
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Additional *bool             `json:"additionalProperties"`
	Items      *schema           `json:"items"`
}

func (s *Server) checkFormat(r *chatRequest) *refusal {
	f := r.Format
	switch {
	case f == nil:
		return nil
	case f.Type != "json_schema" && f.Type != "json_object" && f.Type != "text":
		return invalid(400, fmt.Sprintf("Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type), "response_format.type", "invalid_value")
	case f.Type != "json_schema":
		return nil
	case s.o.NoFormat:
		return invalid(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", "response_format", "")
	case !toolName.MatchString(f.JSONSchema.Name):
		return invalid(400, "Invalid 'response_format.json_schema.name': string does not match pattern.", "response_format.json_schema.name", "invalid_value")
	}
	var top schema
	if json.Unmarshal(f.JSONSchema.Schema, &top) != nil || top.Type != "object" {
		return schemaFault(f, "(), schema must be a JSON Schema of 'type: \"object\"'")
	}
	if f.JSONSchema.Strict {
		if what := top.strict("()"); what != "" {
			return schemaFault(f, what)
		}
	}
	return nil
}

func schemaFault(f *format, what string) *refusal {
	return invalid(400, fmt.Sprintf("Invalid schema for response_format '%s': In context=%s.", f.JSONSchema.Name, what), "response_format", "")
}

// strict returns what of a schema a strict format does not take; "" for nothing.
func (s *schema) strict(at string) string {
	if s.Type == "object" {
		if s.Additional == nil || *s.Additional {
			return at + ", 'additionalProperties' is required to be supplied and to be false"
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if !slices.Contains(s.Required, name) {
				return at + ", 'required' is required to be supplied and to be an array including every key in properties. Missing '" + name + "'"
			}
			p := s.Properties[name]
			if what := p.strict("('properties', '" + name + "')"); what != "" {
				return what
			}
		}
	}
	if s.Items != nil {
		return s.Items.strict("('items')")
	}
	return ""
}
