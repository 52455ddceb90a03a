package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/tool"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/mcp/entry"
)

// noServers is a list of MCP servers without any.
const noServers = "{\n  \"mcpServers\": {}\n}\n"

// newServers joins the MCP servers of the vault. Where commands run below full
// trust, the list is made when it is missing: what stands there is closed to
// such commands, what does not could be made by one, and a crash would leave it.
func (k *kits) newServers(stage string) *mcp.Servers {
	o := mcp.Options{
		Vault: k.a.vault, Env: os.Environ(), Names: k.a.cfg.MCPEnv, Version: version, Stage: stage, Veil: k.a.veil,
		Clock: k.a.clock, Log: k.a.log,
	}
	if k.box != nil {
		o.Box, o.Room, o.Still = k.box, k.shell.Room, k.shell.Still
		_, err := k.a.vault.Root().Lstat(entry.File)
		if errors.Is(err, fs.ErrNotExist) {
			err = k.a.vault.WriteFile(entry.File, []byte(noServers))
		}
		if err != nil {
			k.a.log.Warn("the list of MCP servers", "err", err)
		}
	}
	return mcp.New(o)
}

// offered adds to a kit what MCP servers offer its turn and its agent leaves
// itself, and returns the tools.
func (k *kits) offered(ctx context.Context, kit *orchestrator.Kit, who agent.Agent) []tool.Tool {
	if wantsNone(who) {
		return nil
	}
	o := k.servers.Equip(ctx, kit.Turn, mcp.Only(who.Servers))
	kit.Servers = append(kit.Servers, o.Servers...)
	kit.Missing = append(kit.Missing, o.Missing...)
	kit.Warnings = append(kit.Warnings, o.Warnings...)
	return o.Tools
}

// wantsNone reports whether an agent leaves itself no MCP server's tool.
func wantsNone(who agent.Agent) bool {
	if who.Servers != nil {
		return len(who.Servers) == 0
	}
	return who.Tools != nil && !slices.ContainsFunc(who.Tools, func(name string) bool { return strings.HasPrefix(name, "mcp__") })
}
