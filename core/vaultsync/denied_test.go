package vaultsync_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
)

// A file that does not exist yet can be refused by its name alone, in each form that a file
// system takes for it.
func TestPush_CreatesNothingThatCommandsBelowFullUnderAnyFormOfItsName(t *testing.T) {
	w := open(t)
	may := func(trust core.Trust, user int64, name string, write bool) bool {
		mayRead, mayWrite := permission.Profile{Trust: trust, User: user}.Bounds(nil)
		if write {
			return mayWrite(name)
		}
		return mayRead(name)
	}
	files := func() (names []string) {
		_ = filepath.WalkDir(w.dir, func(name string, _ os.DirEntry, _ error) error {
			names = append(names, name)
			return nil
		})
		return names
	}
	before := files()
	for _, a := range []vaultsync.Area{{User: core.Operator, Trust: core.Vault, May: may}, {User: 7, Trust: core.Sandboxed, May: may}} {
		for _, name := range []string{
			"CLAUDE.md", "claude.MD", "CLAUDE\ufe0f.md", "CLAUDE.md.", "Notes/Agents.md", "AGENT\u017f.md", ".mcp.json", ".MCP.json", ".mcp.j\u200bson", "HEAD", "head ",
			"agents.md/a.md", "Notes/.claude/settings.json", ".parachute/agents/a.md", "\u034f.git/config", "Notes/.GIT/hooks/x", ".ßh/config", "sitecu\ufb06omize.py", ".parachuteignore",
		} {
			_, err := w.Push(t.Context(), a, vaultsync.Sent{Meta: wire.Meta{Path: name}, Device: "phone"}, strings.NewReader("text"))
			if kind := core.KindOf(err); kind != core.Denied && kind != core.Invalid {
				t.Errorf("trust %s: %q: %v", a.Trust, name, err)
			}
		}
	}
	if after := files(); !slices.Equal(after, before) {
		t.Errorf("the vault has %q, had %q", after, before)
	}
}
