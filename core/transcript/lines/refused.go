package lines

import (
	"gatehouse/core"
	"gatehouse/core/vault/line"
)

// refusedResult is what the model reads in place of a tool's result that its provider
// refused.
const refusedResult = "(left out: the model's provider refused what this tool returned)"

// refusals returns the ids of the lines that were refused.
func refusals(lines []line.Line) map[string]bool {
	var ids map[string]bool
	for i := range lines {
		for _, id := range lines[i].Refused {
			if ids == nil {
				ids = map[string]bool{}
			}
			ids[id] = true
		}
	}
	return ids
}

// Accepted returns messages without what was refused. A refused result of a tool stays
// as a line that reports it, because its call needs one. messages is not changed.
func Accepted(messages []Message) []Message {
	refused := false
	for i := range messages {
		refused = refused || messages[i].Refused
	}
	if !refused {
		return messages
	}
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		if !m.Refused {
			out = append(out, m)
			continue
		}
		var results []core.Block
		for _, b := range m.Blocks {
			if b.Type == "tool_result" {
				results = append(results, core.Block{Type: b.Type, ToolUseID: b.ToolUseID, Text: refusedResult, IsError: true})
			}
		}
		if len(results) > 0 {
			m.Blocks, m.Refused = results, false
			out = append(out, m)
		}
	}
	return out
}
