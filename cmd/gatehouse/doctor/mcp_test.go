package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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
