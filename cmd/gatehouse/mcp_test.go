package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/toolset"
)

// newMCPSite is an MCP server over HTTP with the tool echo.
func newMCPSite(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "site", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it."}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "echo of " + in.Text}}}, nil, nil
	})
	site := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(site.Close)
	return site.URL
}

// connected returns once the gateway has connected to these MCP servers.
func (w *world) connected(names ...string) {
	w.t.Helper()
	w.until("MCP servers are connected", func() bool {
		ready := 0
		for _, h := range w.app.tools.Servers.Health() {
			if h.State == mcp.Ready && slices.Contains(names, h.Name) {
				ready++
			}
		}
		return ready == len(names)
	})
}

// The owner's chat reaches what is marked for the vault level, a guest's does
// not; at full trust everything is there, and what is broken is a warning.
func TestMCPServersAnswerThoseWhomTheyAreMarkedFor(t *testing.T) {
	w := newWorld(t, nil)
	w.put(".mcp.json", fmt.Sprintf(`{"mcpServers": {
		"site": {"url": %q, "trust": "vault"},
		"mine": {"url": %q},
		"broken": {"comand": "x"}
	}}`, newMCPSite(t), newMCPSite(t)))
	olga, ada := w.boss(), w.guest("Ada")
	w.connected("site", "mine")
	const say = `use mcp__site__echo {"text":"hello"}`
	if m := w.replies(olga, say); !strings.Contains(m.Text, "The tool answered") || !strings.Contains(m.Text, "echo of hello") {
		t.Errorf("the owner reads %q", m.Text)
	}
	for u, text := range map[string]string{"the owner in a chat": `use mcp__mine__echo {"text":"hello"}`, "a guest": say} {
		from := olga
		if u == "a guest" {
			from = ada
		}
		w.quiet()
		if m := w.replies(from, text); strings.Contains(m.Text, "echo of hello") {
			t.Errorf("%s reads %q", u, m.Text)
		}
	}
	w.quiet()
	if m := w.replies(olga, `use mcp__site__echo {"text":".env"}`); !strings.Contains(m.Text, "The tool failed") {
		t.Errorf("the deny list: %q", m.Text)
	}
	w.quiet()
	_, es := w.chatEvents(map[string]any{"message": `use mcp__mine__echo {"text":"full"}`}, w.as(core.Full))
	var said []string
	for _, e := range es {
		said = append(said, fmt.Sprint(e.Data))
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"mcp_servers:[site mine]", ".mcp.json:4: broken:", "echo of full"} {
		if !strings.Contains(all, want) {
			t.Errorf("the stream lacks %q:\n%s", want, all)
		}
	}
}

// A program runs as the gateway's user at full trust and in a sandbox below,
// ends with its run there, and with the gateway.
func TestMCPProgramsRunWithTheirTurnsAndEndWithTheGateway(t *testing.T) {
	t.Parallel()
	server := filepath.Join(shortDir(t), "server")
	build := coretest.GoBuild("-o", server, "../../core/tool/mcp/testdata/server")
	build.Env = append(build.Env, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := newWorld(t, func(c *configs.Config) { c.MCPEnv = values.List{"MCP_TEST_WORD"} })
	if err := os.Link(server, filepath.Join(w.cfg.VaultPath, "server")); err != nil {
		t.Fatal(err)
	}
	entry := fmt.Sprintf(`{"mcpServers": {"tools": {"command": %q, "trust": "vault", "env": {"WORD": "${MCP_TEST_WORD:-none}"}}}}`, filepath.Join(w.cfg.VaultPath, "server"))
	w.put(".mcp.json", entry)
	w.chatEvents(map[string]any{"message": "hello"}, w.as(core.Full)) // the first turn that may use it starts the program
	w.connected("tools")
	_, es := w.chatEvents(map[string]any{"message": `use mcp__tools__env {"text":""}`}, w.as(core.Full))
	full := fmt.Sprint(es)
	if !strings.Contains(full, "WORD=none") || strings.Contains(full, "HOME=/tmp/home") || strings.Contains(full, "GATEHOUSE_") {
		t.Errorf("at full trust: %s", full)
	}
	olga := w.boss()
	var m telegramtest.Message
	w.until("the program in the sandbox has named its tools", func() bool {
		m = w.replies(olga, `use mcp__tools__env {"text":""}`)
		w.quiet()
		return !w.app.isolated() || strings.Contains(m.Text, "The tool answered")
	})
	if !w.app.isolated() {
		if strings.Contains(m.Text, "WORD=none") {
			t.Errorf("without a sandbox: %q", m.Text)
		}
	} else if !strings.Contains(m.Text, "HOME=/tmp/home") || !strings.Contains(m.Text, "WORD=none") {
		t.Errorf("at vault: %q", m.Text)
	}
	w.quiet()
	w.until("only the program for full trust is left", func() bool { return len(programsOf(t, w)) == 1 })
	w.stop()
	if left := programsOf(t, w); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// programsOf are the processes that run the vault's server by themselves.
func programsOf(t *testing.T, w *world) (list []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		b, _ := os.ReadFile(name)
		if strings.HasPrefix(string(b), filepath.Join(w.cfg.VaultPath, "server")) {
			list = append(list, name)
		}
	}
	return list
}

// Where commands run below full trust, the list stands there from the start,
// so that no command can make it.
func TestTheListOfMCPServersCannotBeMadeByACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if !w.app.tools.Isolated() {
		t.Skip(whyNoBox(w.app))
	}
	list := filepath.Join(w.cfg.VaultPath, ".mcp.json")
	before, err := os.ReadFile(list)
	if err != nil || string(before) != toolset.NoServers {
		t.Fatalf("%q %v", before, err)
	}
	vault := w.as(core.Vault)
	for _, command := range []string{"echo evil > .mcp.json", "rm -f .mcp.json; echo evil > .mcp.json", "mv .mcp.json x", "echo evil > y; mv y .mcp.json"} {
		run := w.read(w.open("POST", "/api/chat", map[string]any{"message": fmt.Sprintf("use Bash {\"command\":%q}", command)}, vault))
		id := run.until("permission_request").Data["id"].(string)
		if code, body := w.call("POST", "/api/permissions/"+id+"/grant", nil); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		if ran := run.until("tool_result"); ran.Data["result"] == nil {
			t.Fatalf("%s did not run: %v", command, ran)
		}
		run.until("message_stop")
		es := run.all
		if after, err := os.ReadFile(list); err != nil || string(after) != toolset.NoServers {
			t.Errorf("%s: %q %v\n%v", command, after, err, es)
		}
	}
}
