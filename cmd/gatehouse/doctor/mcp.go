package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/core/tool/mcp/entry"
)

// checkServers reads the list of MCP servers as the gateway would, and starts none.
func checkServers(_ context.Context, p Subject) []Finding {
	const name = "MCP servers"
	path := filepath.Join(p.Config.VaultPath, entry.File)
	st, err := os.Lstat(path)
	if err == nil && !st.Mode().IsRegular() {
		return []Finding{{name, Warn, entry.File + " is not read: it is a link or something else that is no file", "put a copy of the file there"}}
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []Finding{{name, Warn, entry.File + " cannot be read", "give the gateway's user the right to read it"}}
	}
	servers, mistakes := entry.Parse(text, p.Config.MCPEnv, os.Environ())
	var checks []Finding
	for _, m := range mistakes {
		checks = append(checks, Finding{name, Warn, m.String(), "fix the line; docs/mcp.md lists every field"})
	}
	if len(checks) == 0 {
		checks = append(checks, Finding{Name: name, State: OK, Text: counted(len(servers), "server")})
	}
	return checks
}
