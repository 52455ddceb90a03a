package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/core"
)

var toolName = core.Pattern(`^[A-Za-z0-9_-]{1,64}$`)

// Check reports what is wrong with a tool that someone built: its name, a
// description that is missing, a schema that is no JSON schema of an object,
// or work that is missing. It is for tests, and for tools that come from
// outside (MCP servers).
func Check(t Tool) error {
	kinds := []Kind{Read, Write, Shell, Network, MCP, Inner}
	switch {
	case !toolName().MatchString(t.Name):
		return fmt.Errorf("tool %q: the name is not of letters, digits, _ and -, at most 64", t.Name)
	case strings.TrimSpace(t.About) == "":
		return fmt.Errorf("tool %s: no description", t.Name)
	case !slices.Contains(kinds, t.Kind):
		return fmt.Errorf("tool %s: unknown kind %q", t.Name, t.Kind)
	case t.Run == nil:
		return fmt.Errorf("tool %s: no work", t.Name)
	case t.Timeout < 0:
		return fmt.Errorf("tool %s: negative time-out", t.Name)
	}
	if err := checkSchema(t.Schema, t.Kind != MCP); err != nil {
		return fmt.Errorf("tool %s: schema: %w", t.Name, err)
	}
	return nil
}

// checkSchema: strict is for our own, which refuse unknown names.
func checkSchema(raw json.RawMessage, strict bool) error {
	var s struct {
		Type       string
		Properties map[string]json.RawMessage
		Required   []string
		Additional *bool `json:"additionalProperties"`
	}
	if !strict { // what servers write here may be a schema too
		var outer struct{ Type string }
		if err := json.Unmarshal(raw, &outer); err != nil {
			return err
		}
		s.Type = outer.Type
	} else if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if s.Type != "object" {
		return fmt.Errorf("type is %q, not object", s.Type)
	}
	if !strict {
		return nil
	}
	if s.Additional == nil || *s.Additional {
		return fmt.Errorf("additionalProperties is not false")
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			return fmt.Errorf("%q is required and not described", name)
		}
	}
	return nil
}
