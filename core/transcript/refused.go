package transcript

import (
	"slices"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// refusedResult is what the model reads in place of a tool's result that its provider
// refused.
const refusedResult = "(left out: the model's provider refused what this tool returned)"

// Refuse marks the run's newest messages, those after the last answer, as refused by the
// model's provider: History leaves them out from then on, and people still see them. The
// mark is a line of its own, in the form in which Claude Code notes an error of the API,
// which names them; text is what it says. Without such a message nothing is written.
func (c *Conversation) Refuse(run, text string) error {
	if err := c.begin(); err != nil {
		return err
	}
	all := slices.Clone(c.tail.messages) // others may hold the same ones
	var ids []string
	for i := len(all) - 1; i >= 0 && all[i].Role == "user" && all[i].Run == run && !all[i].Summary; i-- {
		ids = append(append(ids, all[i].more...), all[i].line)
		c.tail.size -= all[i].size()
		all[i].refused = true
		c.tail.size += all[i].size()
	}
	if len(ids) == 0 {
		return nil
	}
	id, now := uuid.NewString(), c.s.clock.Now()
	m := Message{Role: "assistant", Model: "<synthetic>", Stop: "stop_sequence", Blocks: []core.Block{{Type: "text", Text: text}}}
	l, err := c.line("", id, c.tail.last, &m, now)
	if err != nil {
		return err
	}
	l.IsAPIError, l.Refused = true, ids
	if err := c.file.Append(l); err != nil {
		return err
	}
	c.tail.messages, c.tail.last = all, id
	c.tail.info, err = c.file.Stat()
	return err
}

// Refused reports whether the run's newest message is marked by Refuse.
func (c *Conversation) Refused(run string) bool {
	n := len(c.tail.messages)
	return n > 0 && c.tail.messages[n-1].Run == run && c.tail.messages[n-1].refused
}

// refusals returns the ids of the lines that were refused.
func refusals(lines []vault.Line) map[string]bool {
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

// accepted returns messages without what was refused. A refused result of a tool stays
// as a line that says so, because its call needs one. messages is not changed.
func accepted(messages []Message) []Message {
	if !slices.ContainsFunc(messages, func(m Message) bool { return m.refused }) {
		return messages
	}
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		if !m.refused {
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
			m.Blocks, m.refused = results, false
			out = append(out, m)
		}
	}
	return out
}
