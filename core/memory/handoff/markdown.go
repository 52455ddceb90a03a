package handoff

import (
	"strings"
	"time"
)

// Markdown returns a note for any other tool: what it is about, which model wrote it when,
// and what is remembered of the person ("" for nothing).
func Markdown(title, model string, at time.Time, note, memory string) string {
	var b strings.Builder
	b.WriteString("# Handoff")
	if title = strings.TrimSpace(clean(strings.ReplaceAll(title, "\n", " "))); title != "" {
		b.WriteString(": " + title)
	}
	b.WriteString("\n\nWritten by " + model + ", " + at.UTC().Format("2006-01-02 15:04") + " UTC.\n\n" + note + "\n")
	if memory != "" {
		b.WriteString("\n" + memory + "\n")
	}
	return b.String()
}
