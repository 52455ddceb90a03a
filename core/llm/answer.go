package llm

import (
	"strings"

	"gatehouse/core"
)

// An Answer joins deltas into the blocks of one message. The zero value has none.
type Answer struct {
	Stop   string // the last Delta.Stop
	blocks []core.Block
	open   strings.Builder // of the last block
}

// Add appends what d has of text, thinking, calls and the end.
func (a *Answer) Add(d Delta) {
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
		a.Stop = d.Stop
	}
}

// Blocks returns the blocks so far.
func (a *Answer) Blocks() []core.Block {
	a.close()
	return a.blocks
}

// grow adds text to the last block, or begins one.
func (a *Answer) grow(kind, text string) {
	if text == "" {
		return
	}
	if n := len(a.blocks); n == 0 || a.blocks[n-1].Type != kind || a.blocks[n-1].Signature != "" {
		a.close()
		a.blocks = append(a.blocks, core.Block{Type: kind})
	}
	a.open.WriteString(text)
}

func (a *Answer) close() {
	if n := len(a.blocks); n > 0 && a.open.Len() > 0 {
		a.blocks[n-1].Text += a.open.String()
		a.open.Reset()
	}
}
