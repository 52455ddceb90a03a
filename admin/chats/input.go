package chats

import (
	"bytes"
	"encoding/json"
	"strings"

	"gatehouse/core"
)

// maxFields bounds the fields of a call's input on a page.
const maxFields = 40

// A field is one value of a call's input.
type field struct {
	Name, Value string
	IsText      bool // Value is a text, not JSON
}

// fieldsOf returns the input of an MCP server's tool as names and values in their order;
// none for other tools, and for an input that is no object or too large for a table.
func fieldsOf(tool string, input json.RawMessage) (out []field) {
	if !strings.HasPrefix(tool, "mcp__") || len(input) > maxResult {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil || len(out) == maxFields {
			return nil
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil
		}
		text, _ := name.(string)
		f := field{Name: core.Visible(text), Value: pretty(raw)}
		if s := ""; json.Unmarshal(raw, &s) == nil && raw[0] == '"' {
			f.Value, f.IsText = core.Visible(s), true
		}
		out = append(out, f)
	}
	return out
}
