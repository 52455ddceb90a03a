package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/mcp/entry"
)

// checkServers reads the list of MCP servers as the gateway would, and starts none.
// How they are it asks the gateway that serves now.
func checkServers(ctx context.Context, p Subject) []Finding {
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
	if p.Servers != nil {
		checks = append(checks, serversNow(p.Servers(ctx), p.Clock.Now())...)
	}
	if len(checks) == 0 {
		checks = append(checks, Finding{Name: name, State: OK, Text: core.Counted(len(servers), "server")})
	}
	return checks
}

// serversNow returns a finding for each server that the running gateway cannot use.
func serversNow(list []entry.State, now time.Time) (findings []Finding) {
	for _, s := range list {
		if s.State != mcp.Failing {
			continue
		}
		next := "being tried now"
		if !s.Next.IsZero() {
			next = "next try in " + max(0, s.Next.Sub(now)).Round(time.Second).String()
		}
		text := fmt.Sprintf("%s has failed since %s (%s): %s", s.Name, s.Since.Local().Format("2006-01-02 15:04"), next, s.Error)
		findings = append(findings, Finding{"MCP servers", Warn, text, "fix the server or its entry in .mcp.json; answers do without its tools until then"})
	}
	return findings
}
