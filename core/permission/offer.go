package permission

import (
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// An Offer reports whether a tool is offered to a turn, and if not, why: a plain
// sentence for the prompt.
type Offer struct {
	OK  bool
	Why string
}

// Offered returns the trust matrix: which tool a turn is offered at all. isolation
// means that there is a sandbox for what needs one. What is not offered is
// refused when it is called all the same.
func Offered(p Profile, t tool.Tool, isolation bool) Offer {
	no := func(format string, args ...any) Offer { return Offer{Why: fmt.Sprintf(format, args...)} }
	switch {
	case p.Trust != core.Sandboxed && p.Trust != core.Vault && p.Trust != core.Full:
		return no("%s is not offered to strangers.", t.Name)
	case p.Trust < t.Least:
		return no("%s is offered from trust %s on, and this turn has %s.", t.Name, t.Least, p.Trust)
	}
	switch t.Kind {
	case tool.Read, tool.Write, tool.Inner:
	case tool.Shell:
		if p.Trust < core.Full && !isolation {
			return no("%s is not offered at trust %s, because this machine has no sandbox to run it in.", t.Name, p.Trust)
		}
	case tool.Network:
		if p.Trust == core.Sandboxed && len(p.GuestRead) > 0 {
			return no("%s is not offered at trust sandboxed while guests may read files of the vault (%s): what they read could leave by it.",
				t.Name, strings.Join(p.GuestRead, ", "))
		}
	case tool.MCP:
		if p.Trust < core.Full && t.Least == core.Stranger {
			return no("%s belongs to an MCP server that is not marked for trust %s.", t.Name, p.Trust)
		}
	default:
		return no("%s is of a kind that cannot be granted.", t.Name)
	}
	if t.Isolated && p.Trust < core.Full && !isolation {
		return no("%s is not offered at trust %s, because this machine has no sandbox to run it in.", t.Name, p.Trust)
	}
	return Offer{OK: true}
}
