package chats

import (
	"strings"

	"gatehouse/core/transcript"
)

// maxHelped bounds what the page shows of one helper, in bytes as they are escaped.
const maxHelped = 16 << 10

// helped returns what a helper did, for the page; nil for nothing.
func (t *telling) helped(did []transcript.Message) *helperView {
	if len(did) == 0 {
		return nil
	}
	of := telling{label: t.label, display: t.display, id: t.id, results: map[string]result{}} // bounded by the helper's messages
	for i := range did {
		for j := range did[i].Blocks {
			if b := &did[i].Blocks[j]; b.Type == "tool_result" {
				of.results[b.ToolUseID] = result{Block: b, when: did[i].At}
			}
		}
	}
	h, size := &helperView{}, 0
	for i := range did {
		m := &did[i]
		if m.Role != "assistant" { // what it was asked is the call's input
			continue
		}
		for j := range m.Blocks {
			x, ok := of.part(m, &m.Blocks[j], nil, 0)
			if !ok {
				continue
			}
			call := x.Kind == "call"
			if call {
				h.Calls++
			}
			if size += x.size(); size <= maxHelped {
				h.Parts = append(h.Parts, x)
			} else if call {
				h.More++
			}
		}
	}
	if len(h.Parts)+h.More == 0 {
		return nil
	}
	return h
}

// size returns how large x is on the page, in bytes.
func (x *saidPart) size() int {
	n := 400 + 700*len(x.Files) + len(x.HTML)
	for _, text := range []string{x.Text, x.Label, x.Input, x.Result} {
		n += len(text) + 5*strings.Count(text, `"`) + 4*strings.Count(text, "<") + 4*strings.Count(text, "&") + 4*strings.Count(text, "'") // as it is escaped
	}
	if x.Helper != nil {
		for i := range x.Helper.Parts {
			n += x.Helper.Parts[i].size()
		}
	}
	return n
}
