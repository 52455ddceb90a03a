package agent

import (
	"slices"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/agent/frontmatter"
)

// limiting are words in the names of fields that may take something away. Such a field is
// not ignored: the agent would be allowed more than its file states.
var limiting = []string{"tool", "permission", "permit", "trust", "level", "allow", "deny", "deni", "forbid", "restrict", "except", "exclude", "only", "block", "disable", "approv",
	"confirm", "guard", "policy", "scope", "limit", "max", "read", "write", "bash", "shell", "command", "hook", "mcp", "server", "sandbox", "network", "access", "path", "folder"}

// foreign returns the fields of an agent's file that only other programs know, with a note
// for each. One that is nearly the name of a known field, or may limit the agent, is not
// among them: Decode reports it as a fault.
func foreign(h *frontmatter.Header, below, above string) (ignored []string, notes []Fault) {
	for _, k := range h.Keys(below) {
		plain := frontmatter.Plain(k)
		switch {
		case slices.Contains(agentKeys, k), below == "" && k == "agent",
			strings.HasPrefix(plain, "ask"), slices.ContainsFunc(limiting, func(word string) bool { return strings.Contains(plain, word) }),
			slices.ContainsFunc(agentKeys, func(own string) bool { return frontmatter.Near(plain, frontmatter.Plain(own)) }),
			strings.IndexFunc(k, unicode.IsControl) >= 0:
			continue
		}
		ignored = append(ignored, k)
		notes = append(notes, *h.At(above+k, "unknown field %q is ignored; docs/agents.md lists those that there are", k))
	}
	return ignored, notes
}

// provider returns a model's name with its provider, and a note where that was missing.
func provider(model string) (name, note string) {
	if model == "" || strings.Contains(model, "/") || core.CouncilLevel(model) != "" {
		return model, ""
	}
	lower := strings.ToLower(model)
	switch {
	case strings.HasPrefix(lower, "claude-"):
		return "anthropic/" + model, "the model has no provider; it is read as anthropic/NAME"
	case strings.HasPrefix(lower, "gpt-"), strings.HasPrefix(lower, "chatgpt-"), len(lower) > 1 && lower[0] == 'o' && lower[1] >= '0' && lower[1] <= '9':
		return "openai/" + model, "the model has no provider; it is read as openai/NAME"
	}
	return model, "the model has no provider; write anthropic/NAME, openai/NAME or local/quote"
}
