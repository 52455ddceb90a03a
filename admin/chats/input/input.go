// Package input renders the inputs of tool calls for readers.
package input

import (
	"bytes"
	"encoding/json"
	"strings"

	"gatehouse/core"
)

const (
	// Max bounds what is shown of an input, in bytes.
	Max       = 3000
	maxFields = 40
)

// A Field is one value of a call's input.
type Field struct {
	Name, Value string
	IsText      bool // Value is a text, not JSON
}

// Fields returns the input of an MCP server's tool as names and values in their order;
// none for other tools, and for an input that is no object or too large for a table.
func Fields(tool string, input json.RawMessage) (out []Field) {
	if !strings.HasPrefix(tool, "mcp__") || len(input) > Max {
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
		f := Field{Name: core.Visible(text), Value: Pretty(raw)}
		if s := ""; json.Unmarshal(raw, &s) == nil && raw[0] == '"' {
			f.Value, f.IsText = core.Visible(s), true
		}
		out = append(out, f)
	}
	return out
}

// Pretty returns a call's input, one field a line.
func Pretty(input json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, input, "", "  ") != nil {
		return core.Visible(core.CutRunes(string(input), Max))
	}
	return core.CutRunes(core.Visible(b.String()), Max)
}
