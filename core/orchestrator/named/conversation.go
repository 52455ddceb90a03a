package named

import (
	"net/url"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
)

// In reports whether messages of a transcript name u, with this host: its host in a text
// of the user, or u itself in the result of a fetch or search. runs has the user of each
// run of this gateway; anyone may have written the messages of others.
func In(messages []lines.Message, runs map[string]int64, user int64, u *url.URL, host string) bool {
	asked := map[string]*core.Block{} // calls of tools, by id
	for i := range messages {
		m := &messages[i]
		author, known := runs[m.Run]
		if !known || m.Summary {
			continue
		}
		for k := range m.Blocks {
			b := &m.Blocks[k]
			switch call := asked[b.ToolUseID]; {
			case b.Type == "tool_use":
				asked[b.ID] = b
			case b.Type == "tool_result" && call != nil && !b.IsError && (Result{Tool: call.Name, Input: call.Input, Text: b.Text}).Names(u, host),
				m.Role == "user" && b.Type == "text" && author == user && user > 0 && ByUser(Own(b.Text), host):
				return true
			}
		}
	}
	return false
}
