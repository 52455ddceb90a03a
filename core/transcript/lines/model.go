package lines

import (
	"slices"
	"strings"

	"gatehouse/core"
)

// ForModel returns messages as they may be replayed to model. Thinking is a model's
// own: its signature is worth something only to models of the same family, so
// what another family thought is left out. messages is not changed: without such
// thinking it is returned.
func ForModel(messages []Message, model string) []Message {
	to := family(model)
	foreign, last, other := false, model, false
	for i := 0; i < len(messages) && !foreign; i++ {
		if m := &messages[i]; m.Role == "assistant" {
			if m.Model != last { // most have the model of the one before
				last, other = m.Model, family(m.Model) != to
			}
			foreign = other && (len(m.Blocks) == 0 || m.thinks())
		}
	}
	if !foreign {
		return messages
	}
	out := make([]Message, 0, len(messages))
	for i := range messages {
		m := messages[i]
		if m.Role == "assistant" && family(m.Model) != to {
			m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b core.Block) bool { return b.Thought() })
			if len(m.Blocks) == 0 {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// thinks reports whether m has thinking.
func (m *Message) thinks() bool {
	for i := range m.Blocks {
		if m.Blocks[i].Thought() {
			return true
		}
	}
	return false
}

// family returns what models of one make have in common. Claude Code writes names
// without provider ("claude-sonnet-5"), and other providers offer Claude too.
func family(model string) string {
	model = strings.ToLower(model)
	if strings.Contains(model, "claude") {
		return "claude"
	}
	provider, _, _ := strings.Cut(model, "/")
	return provider
}
