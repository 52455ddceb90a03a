package orchestrator

import (
	"strings"

	"gatehouse/core"
)

// words returns the text of blocks.
func words(blocks []core.Block) string {
	var b strings.Builder
	for _, x := range blocks {
		if x.Type == "text" {
			b.WriteString(x.Text)
		}
	}
	return b.String()
}

// calls returns the calls of tools in blocks.
func calls(blocks []core.Block) []core.Block {
	var out []core.Block
	for _, b := range blocks {
		if b.Type == "tool_use" {
			out = append(out, b)
		}
	}
	return out
}
