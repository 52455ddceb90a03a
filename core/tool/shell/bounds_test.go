package shell_test

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
)

// bounds are those of these tests: like the real ones in what matters here
// (cmd/gatehouse tries the real ones).
func bounds(trust core.Trust, user int64, public []string) (mayRead, mayWrite func(string) bool) {
	mine := "Guests/" + strconv.FormatInt(user, 10)
	under := func(name, top string) bool { return name == top || strings.HasPrefix(name, top+"/") }
	read := func(name string) bool {
		parts, base := strings.Split(name, "/"), path.Base(name)
		secret := strings.HasPrefix(base, ".env") || strings.HasPrefix(base, "id_") || under(name, ".claude/projects") ||
			under(name, ".parachute") && !under(name, ".parachute/agents") || strings.HasPrefix(name, "Chat/") && strings.Contains(base, ".db") ||
			slices.Contains(parts, ".ssh")
		switch {
		case strings.HasPrefix(name, "/") || secret:
			return false
		case trust == core.Sandboxed:
			return under(name, mine) || slices.ContainsFunc(public, func(p string) bool { return under(name, p) })
		}
		return true
	}
	write := func(name string) bool {
		for _, p := range strings.Split(name, "/") {
			if slices.Contains([]string{"CLAUDE.md", "AGENTS.md", ".mcp.json", ".claude", ".parachute", ".git", ".agents"}, p) {
				return false
			}
		}
		return read(name) && (trust != core.Sandboxed || under(name, mine))
	}
	return read, write
}
