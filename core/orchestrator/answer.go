package orchestrator

import (
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// An answer joins deltas into blocks.
type answer struct {
	blocks []core.Block
	open   strings.Builder // of the last block
	stop   string
}

func (a *answer) add(d llm.Delta) {
	a.grow("thinking", d.Thinking)
	if d.Signature != "" {
		a.close()
		if n := len(a.blocks); n > 0 && a.blocks[n-1].Type == "thinking" && a.blocks[n-1].Signature == "" {
			a.blocks[n-1].Signature = d.Signature
		} else {
			a.blocks = append(a.blocks, core.Block{Type: "thinking", Signature: d.Signature})
		}
	}
	if d.Redacted != "" {
		a.close()
		a.blocks = append(a.blocks, core.Block{Type: core.Redacted, Signature: d.Redacted})
	}
	a.grow("text", d.Text)
	if d.Call != nil {
		a.close()
		a.blocks = append(a.blocks, *d.Call)
	}
	if d.Stop != "" {
		a.stop = d.Stop
	}
}

// grow adds text to the last block, or begins one.
func (a *answer) grow(kind, text string) {
	if text == "" {
		return
	}
	if n := len(a.blocks); n == 0 || a.blocks[n-1].Type != kind || a.blocks[n-1].Signature != "" {
		a.close()
		a.blocks = append(a.blocks, core.Block{Type: kind})
	}
	a.open.WriteString(text)
}

func (a *answer) close() {
	if n := len(a.blocks); n > 0 && a.open.Len() > 0 {
		a.blocks[n-1].Text = a.open.String()
		a.open.Reset()
	}
}

func (a *answer) done() []core.Block {
	a.close()
	return a.blocks
}

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

func calls(blocks []core.Block) []core.Block {
	var out []core.Block
	for _, b := range blocks {
		if b.Type == "tool_use" {
			out = append(out, b)
		}
	}
	return out
}
