package llm

import "gatehouse/core"

// WithResults returns messages with these results of tool calls: in place of those that
// messages have for the same calls, and the others as a message at the end. It changes the
// blocks of messages.
func WithResults(messages []Message, results []core.Block) []Message {
	known := map[string]int{}
	for i := range results {
		known[results[i].ToolUseID] = i
	}
	for _, m := range messages {
		for i, b := range m.Blocks {
			if n, ok := known[b.ToolUseID]; ok && b.Type == "tool_result" {
				m.Blocks[i] = results[n]
				delete(known, b.ToolUseID)
			}
		}
	}
	var rest []core.Block
	for i := range results {
		if _, ok := known[results[i].ToolUseID]; ok {
			rest = append(rest, results[i])
		}
	}
	if len(rest) > 0 {
		messages = append(messages, Message{Role: "user", Blocks: rest})
	}
	return messages
}
