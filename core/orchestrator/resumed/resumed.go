// Package resumed reads what the transcript of a runtime says of a turn that an earlier attempt
// has begun: whether it was answered, and which of its calls were cut.
package resumed

import (
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/transcript"
)

// Before returns what an imported or continued session goes on from, which the
// runtime does not find in its transcript.
func Before(past []transcript.Message) core.Block {
	var b strings.Builder
	b.WriteString("[What was said before in this conversation:\n")
	for _, m := range past {
		if said := core.BlocksText(m.Blocks); said != "" {
			fmt.Fprintf(&b, "\n%s: %s\n", m.Role, said)
		}
	}
	b.WriteString("]")
	return core.Block{Type: "text", Text: b.String()}
}

// GoOn is the text that has a runtime continue what a restart has cut.
const GoOn = "[The gateway was restarted while you worked on the message above. A tool call without a result was interrupted: whether it was done is unknown, so look before you do it again. Go on with what the message asks for.]"

// Ended returns the answer that is at the end of what an earlier attempt left.
func Ended(behind []transcript.Message) (string, bool) {
	if len(behind) == 0 {
		return "", false
	}
	m := behind[len(behind)-1]
	if m.Role != "assistant" || m.Calls() || m.Stop == "" || m.Stop == "tool_use" {
		return "", false
	}
	said := core.BlocksText(m.Blocks)
	return said, said != ""
}

// looks are tools of other loops that only look: doing them again harms no one.
var looks = map[string]bool{"Read": true, "Glob": true, "Grep": true, "Search": true, "LS": true, "WebFetch": true, "WebSearch": true, call.AskName: true}

// Unanswered returns the calls that may have had effects and have no result.
func Unanswered(behind []transcript.Message) (what []string) {
	done := map[string]bool{}
	for _, m := range behind {
		for _, b := range m.Blocks {
			done[b.ToolUseID] = true
		}
	}
	for _, m := range behind {
		for _, b := range m.Blocks {
			if b.Type == "tool_use" && !done[b.ID] && !looks[b.Name] {
				what = append(what, call.Label(b.Name, b.Input))
			}
		}
	}
	return what
}
