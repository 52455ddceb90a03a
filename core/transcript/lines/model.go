package lines

import (
	"strings"

	"gatehouse/core"
)

// ForModel returns messages as they may be replayed to model. Thinking is a model's
// own: its signature is worth something only to models of the same family, so
// what another family thought is left out.
func ForModel(messages []Message, model string) []Message {
	out := make([]Message, 0, len(messages))
	to := family(model)
	for _, m := range messages {
		if m.Role == "assistant" && family(m.Model) != to {
			var blocks []core.Block
			for _, b := range m.Blocks {
				if !b.Thought() {
					blocks = append(blocks, b)
				}
			}
			if m.Blocks = blocks; len(blocks) == 0 {
				continue
			}
		}
		out = append(out, m)
	}
	return out
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
