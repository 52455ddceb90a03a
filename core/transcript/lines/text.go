package lines

import "strings"

// Text returns the text of m, without thinking and tools.
func (m *Message) Text() string {
	var parts []string
	for i := range m.Blocks {
		if m.Blocks[i].Type == "text" {
			parts = append(parts, m.Blocks[i].Text)
		}
	}
	return strings.Join(parts, "\n")
}

// SummaryIntro is what the model reads in front of a summary.
const SummaryIntro = "This is a summary of the earlier part of the conversation, which was longer than fits:\n\n"
