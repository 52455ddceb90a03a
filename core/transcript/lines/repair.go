package lines

import (
	"slices"

	"gatehouse/core"
)

// Texts for places where a model's API requires some and the transcript has none.
const (
	lostResult  = "interrupted, outcome unknown"
	earlierCall = "Result of an earlier tool call: "
)

// Repaired returns messages as every provider takes them: behind a message with
// tool calls is one with all their results, in the order of the calls. A missing one
// becomes an error; the result of no call, or a second one, becomes text. messages is
// not changed: without calls and results it is returned.
func Repaired(messages []Message) []Message {
	tools := false
	for i := range messages {
		tools = tools || messages[i].UsesTools()
	}
	if !tools {
		return slices.Clip(messages)
	}
	out := make([]Message, 0, len(messages))
	for i := 0; i < len(messages); {
		m := messages[i]
		i++
		if m.Role != "assistant" {
			out = append(out, told(m, nil))
			continue
		}
		open := callIDs(&m)
		out = append(out, m)
		if len(open) == 0 {
			continue
		}
		end := i // after the next messages of users and tools
		for end < len(messages) && messages[end].Role != "assistant" {
			end++
		}
		result, taken := results(open, messages[i:end])
		result.Model, result.Run = "", m.Run
		out = append(out, result)
		for ; i < end; i++ {
			if rest := told(messages[i], taken); len(rest.Blocks) > 0 {
				out = append(out, rest)
			}
		}
	}
	return out
}

// UsesTools reports whether m has calls or results of tools.
func (m *Message) UsesTools() bool {
	for i := range m.Blocks {
		if t := m.Blocks[i].Type; t == "tool_use" || t == "tool_result" {
			return true
		}
	}
	return false
}

// callIDs returns the ids of m's calls. A second call of the same id is taken out
// of m: there is no way to answer both.
func callIDs(m *Message) (ids []string) {
	seen, twice := map[string]bool{}, false
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Type == "tool_use" {
			if twice = twice || seen[b.ID]; !seen[b.ID] {
				ids, seen[b.ID] = append(ids, b.ID), true
			}
		}
	}
	if !twice {
		return ids
	}
	var blocks []core.Block
	for _, b := range m.Blocks {
		if b.Type != "tool_use" || seen[b.ID] {
			blocks = append(blocks, b)
		}
		if b.Type == "tool_use" {
			seen[b.ID] = false
		}
	}
	m.Blocks = blocks
	return ids
}

// results returns the message with the results of the open calls, and which blocks
// of said are in it.
func results(open []string, said []Message) (Message, map[*core.Block]bool) {
	out, taken := Message{Role: "user"}, map[*core.Block]bool{}
	for _, id := range open {
		b := find(id, said)
		if b == nil {
			out.Blocks = append(out.Blocks, core.Block{Type: "tool_result", ToolUseID: id, Text: lostResult, IsError: true})
			continue
		}
		out.Blocks, taken[b] = append(out.Blocks, *b), true
	}
	for i := range said {
		if len(said[i].Blocks) > 0 && taken[&said[i].Blocks[0]] {
			out.At, out.UUID = said[i].At, said[i].UUID
			break
		}
	}
	return out, taken
}

// find returns the first result of the call id.
func find(id string, said []Message) *core.Block {
	for i := range said {
		for j := range said[i].Blocks {
			if b := &said[i].Blocks[j]; b.Type == "tool_result" && b.ToolUseID == id {
				return b
			}
		}
	}
	return nil
}

// told returns m without the taken results; results of no call are text.
func told(m Message, taken map[*core.Block]bool) Message {
	changes := false
	for i := range m.Blocks {
		changes = changes || m.Blocks[i].Type == "tool_result"
	}
	if !changes {
		return m
	}
	var blocks []core.Block
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case taken[b]:
		case b.Type == "tool_result":
			blocks = append(blocks, core.Block{Type: "text", Text: earlierCall + b.Text})
			if len(b.Media) > 0 {
				blocks = append(blocks, core.Block{Type: "media", Media: append([]core.Media(nil), b.Media...)})
			}
		default:
			blocks = append(blocks, *b)
		}
	}
	m.Blocks = blocks
	return m
}
