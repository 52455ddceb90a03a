package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/mcp/entry"
)

func TestDoctorReportsMistakesInTheListOfMCPServers(t *testing.T) {
	p := healthySubject(t)
	if found, _ := examine(t, p, "MCP servers"); len(found) > 0 {
		t.Errorf("without a list: %+v", found)
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(p.Config.VaultPath, ".mcp.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mcpServers": {"a": {"command": "x"}}}`)
	if found, ok := examine(t, p, "MCP servers"); !ok || len(found) != 1 || found[0].State != OK || found[0].Text != "1 server" {
		t.Errorf("%+v", found)
	}
	write("{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"b\": {\"command\": \"${HOME}\"}}}")
	found, _ := examine(t, p, "MCP servers")
	if !slices.ContainsFunc(found, func(c Finding) bool {
		return c.State == Warn && c.Text == ".mcp.json:2: b: ${HOME} is not listed in GATEHOUSE_MCP_ENV" && c.Fix != ""
	}) {
		t.Errorf("%+v", found)
	}
}

func TestDoctorReportsMCPServersThatTheRunningGatewayCannotUse(t *testing.T) {
	p := healthySubject(t)
	if err := os.WriteFile(filepath.Join(p.Config.VaultPath, ".mcp.json"), []byte(`{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p.Clock = coretest.NewClock(now)
	servers := []entry.State{
		{Name: "a", State: mcp.Ready},
		{Name: "b", State: mcp.Failing, Since: now.Add(-time.Minute), Next: now.Add(8 * time.Second), Error: "connection refused"},
	}
	p.Servers = func(context.Context) []entry.State { return servers }
	found, _ := examine(t, p, "MCP servers")
	if len(found) != 1 || found[0].State != Warn || found[0].Text != "b has failed since "+now.Add(-time.Minute).Local().Format("2006-01-02 15:04")+" (next try in 8s): connection refused" {
		t.Errorf("%+v", found)
	}
	servers = servers[:1]
	if found, _ := examine(t, p, "MCP servers"); len(found) != 1 || found[0].State != OK || found[0].Text != "2 servers" {
		t.Errorf("%+v", found)
	}
}
