package anthropictest

import (
	"slices"
	"strings"
	"sync"
)

// A memory is what the fake knows of the answers that it gave. The real API reads the same
// in the signatures.
type memory struct {
	mu   sync.Mutex
	sent map[string][]string // by the id of the first call: the order of the message; at most maxKept
}

const maxKept = 1000

// Parts of a message whose order is checked.
const (
	partCall     = "tool_use"
	partRedacted = "redacted_thinking:"
	partThinking = "thinking:"
)

// keep notes the thinking and the calls of r, in their order.
func (s *memory) keep(r Reply) {
	var parts []string
	id := ""
	for next := &r; next != nil; next = next.Then {
		if len(next.Thinking) > 0 || next.Signature != "" {
			parts = append(parts, partThinking+strings.Join(next.Thinking, "")+"/"+next.Signature)
		}
		if next.Redacted != "" {
			parts = append(parts, partRedacted+next.Redacted)
		}
		for _, c := range next.Calls {
			if id == "" {
				id = c.ID
			}
			parts = append(parts, partCall)
		}
	}
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil || len(s.sent) >= maxKept {
		s.sent = map[string][]string{}
	}
	s.sent[id] = parts
}

// checkThought checks the thinking of the message whose calls are answered by the last
// one: it comes back complete, unmodified and in its order
// (https://platform.claude.com/docs/en/build-with-claude/thinking-tool-workflows). Without
// the parameter "thinking" none is read. Adaptive thinking asks for none at the beginning
// (…/adaptive-thinking), but redacted blocks that are filtered out are noticed.
func (s *memory) checkThought(m *Message) *refusal {
	at := len(m.Messages) - 2
	if m.Thinking == nil || m.Thinking.Type == "disabled" || at < 0 || m.Messages[at].Role != "assistant" {
		return nil
	}
	var parts []string
	id := ""
	for i := range m.Messages[at].Content {
		switch b := &m.Messages[at].Content[i]; b.Type {
		case "thinking":
			parts = append(parts, partThinking+b.Thinking+"/"+b.Signature)
		case "redacted_thinking":
			parts = append(parts, partRedacted+b.Data)
		case "tool_use":
			if id == "" {
				id = b.ID
			}
			parts = append(parts, partCall)
		}
	}
	s.mu.Lock()
	sent, known := s.sent[id]
	s.mu.Unlock()
	has := func(parts []string, kind string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, kind) })
	}
	if id == "" || !known || slices.Equal(parts, sent) {
		return nil
	}
	switch bare := !has(parts, partThinking) && !has(parts, partRedacted); {
	case bare && m.Thinking.Type == "enabled":
		return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", at)
	case bare && !has(sent, partRedacted):
		return nil
	}
	return invalid("messages.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.", at)
}
