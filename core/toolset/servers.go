package toolset

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/mcp/entry"
)

// NoServers is an empty list of MCP servers.
const NoServers = "{\n  \"mcpServers\": {}\n}\n"

// settle finds out whether programs run isolated, which may take longer than the start of
// the gateway. Where they do, a missing list of MCP servers is created before the first: an
// existing file is closed to commands below full trust, but one of them could create a
// missing file, which a crash would leave.
func (s *Set) settle() {
	s.noBox = "isolation is not set up"
	if s.Options.Box != nil {
		s.found, s.noBox = s.Options.Box()
	}
	if s.found == nil {
		s.Log.Warn("below full trust there is no shell", "why", s.noBox)
		return
	}
	_, err := s.Vault.Root().Lstat(entry.File)
	if errors.Is(err, fs.ErrNotExist) {
		err = s.Vault.WriteFile(entry.File, []byte(NoServers))
	}
	if err != nil {
		s.Log.Warn("the list of MCP servers", "err", err)
	}
}

// box returns what isolates programs; nil: nothing does.
func (s *Set) box() sandbox.Box {
	s.settling.Wait()
	return s.found
}

// Isolated reports whether programs run isolated. It waits until that is known.
func (s *Set) Isolated() bool { return s.box() != nil }

// newServers returns the vault's MCP servers.
func (s *Set) newServers() *mcp.Servers {
	o := mcp.Options{
		Vault: s.Vault, Env: os.Environ(), Names: s.MCPEnv, Version: s.Version, Stage: s.Stage, Veil: s.Veil,
		Clock: s.Clock, Log: s.Log, Box: s.box, Room: s.shell.Room, Still: s.shell.Still,
		Leave: func(run string) {
			if err := s.shell.End(run); err != nil {
				s.Log.Warn("scratch of an MCP server is left", "run", run, "err", err)
			}
		},
	}
	return mcp.New(o)
}

// ofServers returns the tools that MCP servers offer a turn and its agent
// allows, and adds the servers and what is missing to kit.
func (s *Set) ofServers(ctx context.Context, kit *orchestrator.Kit, who agent.Agent) []tool.Tool {
	if wantsNone(who) {
		return nil
	}
	o := s.Servers.Equip(ctx, kit.Turn, mcp.Only(who.Servers))
	kit.Servers = append(kit.Servers, o.Servers...)
	kit.Missing = append(kit.Missing, o.Missing...)
	kit.Warnings = append(kit.Warnings, o.Warnings...)
	return o.Tools
}

// wantsNone reports whether an agent allows itself no tool of an MCP server.
func wantsNone(who agent.Agent) bool {
	if who.Servers != nil {
		return len(who.Servers) == 0
	}
	return who.Tools != nil && !slices.ContainsFunc(who.Tools, func(name string) bool { return strings.HasPrefix(name, "mcp__") })
}
