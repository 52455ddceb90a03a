package orchestrator

import "gatehouse/core"

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
