package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/auth/keyfile"
)

// outsideEnv is the environment of a program that is to find w's gateway.
func (w *world) outsideEnv(more ...string) []string {
	env := append([]string{"HOME=" + w.t.TempDir(), "GATEHOUSE_VAULT_PATH=" + w.cfg.VaultPath}, more...)
	for _, name := range []string{"PATH", "XDG_RUNTIME_DIR", "TMPDIR"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// overStdio connects an agent that starts `gatehouse mcp`.
func (w *world) overStdio(args ...string) *outside {
	w.t.Helper()
	cmd := exec.Command(program(w.t.(*testing.T)), append([]string{"mcp"}, args...)...)
	cmd.Env, cmd.Stderr = w.outsideEnv(), os.Stderr
	s, err := sdk.NewClient(&sdk.Implementation{Name: "outside", Version: "1"}, nil).Connect(w.t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return &outside{ClientSession: s, t: w.t}
}

// The program passes on what the key for local tools may do, without the requests of
// strangers unless it is told to; with another key it has that key's rights.
func TestMCP_OverStandardInputAndOutput(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.put("Notes/Tea.md", "The kettle is blue.\n")
	model.Script(llmtest.Say("Blue."))
	o := w.overStdio()
	if tools := strings.Join(o.tools(), " "); tools != "ask_agent journal_add read_note search send_message session_read sessions_list" {
		t.Errorf("offered %s", tools)
	}
	o.must("read_note", map[string]any{"path": "Notes/Tea.md"}, "The kettle is blue.")
	o.must("ask_agent", map[string]any{"message": "Which colour?"}, "Blue.")
	if tools := strings.Join(w.overStdio("--scope", "read,admin").tools(), " "); tools != "pairing_approve pairing_deny pairing_list read_note search session_read sessions_list" {
		t.Errorf("with admin offered %s", tools)
	}
	model.Script(llmtest.Say("Still blue."))
	piped := exec.Command(program(t), "mcp") // as in: printf … | gatehouse mcp
	piped.Env = w.outsideEnv()
	piped.Stdin = strings.NewReader(initialize + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent","arguments":{"message":"Now?"}}}`)
	if out, err := piped.CombinedOutput(); err != nil || !strings.Contains(string(out), "Still blue.") {
		t.Errorf("with an input that ends: %v %s", err, out)
	}
	none := exec.Command(program(t), "mcp", "--scope", "")
	none.Env, none.Stdin = w.outsideEnv(), strings.NewReader(initialize+"\n")
	if out, err := none.CombinedOutput(); err != nil || !strings.Contains(string(out), "this needs the scope") {
		t.Errorf("with no scope: %v %s", err, out)
	}
	guest, _ := w.keyFor(w.person(w.friend("Gus")), core.Sandboxed, "read")
	file := filepath.Join(t.TempDir(), "key")
	if err := keyfile.Write(file, guest); err != nil {
		t.Fatal(err)
	}
	w.overStdio("--key-file", file).refused("read_note", map[string]any{"path": "Notes/Tea.md"}, "there is no such file")
}

// Without a gateway, calls are answered with what to do.
func TestMCP_OverStandardInputAndOutputWithoutAGateway(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	cmd := exec.Command(program(t), "mcp")
	for k, v := range h.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdin = strings.NewReader(initialize + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"id":1`) || !strings.Contains(string(out), "gatehouse serve") {
		t.Errorf("%v %s", err, out)
	}
}

var block = regexp.MustCompile("(?s)```(sh|json)\n(.*?)```")

// The examples of docs/mcp-server.md work as they are, but for the addresses.
func TestTheExamplesOfTheMCPDocumentWork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "mcp-server.md"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	w.put("Notes/Tea.md", "Green tea brews for two minutes.\n")
	w.until("the note can be found", func() bool {
		_, body := w.call("GET", "/api/search?q=brews", nil)
		return strings.Contains(body, "Tea.md")
	})
	tried := 0
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		switch text := strings.ReplaceAll(m[2], "http://127.0.0.1:3333", "http://"+w.cfg.Addr); {
		case m[1] == "json":
			var c struct {
				Servers map[string]struct {
					Args []string          `json:"args"`
					Env  map[string]string `json:"env"`
				} `json:"mcpServers"`
			}
			if err := json.Unmarshal([]byte(text), &c); err != nil || c.Servers["gatehouse"].Args[0] != "mcp" || c.Servers["gatehouse"].Env["GATEHOUSE_VAULT_PATH"] == "" {
				t.Fatalf("%v %s", err, text)
			}
			w.overStdio(c.Servers["gatehouse"].Args[1:]...).must("sessions_list", nil)
			tried++
		case strings.HasPrefix(text, "curl "):
			cmd := exec.Command("sh", "-c", text)
			cmd.Env = w.outsideEnv("GATEHOUSE_KEY="+w.key, "NO_PROXY=127.0.0.1")
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Notes/Tea.md:1") {
				t.Errorf("%v %s", err, out)
			}
			tried++
		case strings.HasPrefix(text, "claude mcp add "): // TestMCP_ClaudeCodeUsesTheGateway
			tried++
		}
	}
	if tried != 3 {
		t.Errorf("%d examples were tried, want 3", tried)
	}
}

// TestMCP_TheOfficialNodeClientWorksUnchanged runs where .ci/clients has fetched the client:
// GATEHOUSE_TEST_MCP_NODE is its folder.
func TestMCP_TheOfficialNodeClientWorksUnchanged(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("GATEHOUSE_TEST_MCP_NODE")
	if dir == "" {
		t.Skip("SKIPPED: no client here: make test-clients fetches it")
	}
	client, err := filepath.Abs("../../web/mcp/clienttest/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	w, model := newModelWorld(t, nil)
	w.put("Notes/Tea.md", "The kettle is blue.\n")
	model.Script(llmtest.Say("It is blue."), hanging(), llmtest.Say("It is blue."), hanging())
	cmd := exec.CommandContext(t.Context(), "node", client)
	cmd.Env = w.outsideEnv("NO_PROXY=127.0.0.1", "MCP_TEST_NODE="+dir, "MCP_TEST_URL=http://"+w.cfg.Addr+"/mcp", "MCP_TEST_KEY="+w.key, "MCP_TEST_PROGRAM="+program(t))
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
	w.until("the runs of the cancelled calls are stopped", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'aborted'`) == 2 })
}

// TestMCP_ClaudeCodeUsesTheGateway runs where GATEHOUSE_TEST_CLAUDE names the program
// (make test-claude), against a fake Messages API: it is added as docs/mcp-server.md says, lists
// the tools and calls one.
func TestMCP_ClaudeCodeUsesTheGateway(t *testing.T) {
	t.Parallel()
	claude := os.Getenv("GATEHOUSE_TEST_CLAUDE")
	if claude == "" {
		t.Skip("SKIPPED: no Claude Code CLI; run make test-claude")
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "mcp-server.md"))
	if err != nil {
		t.Fatal(err)
	}
	add := regexp.MustCompile("(?m)^claude mcp add .*$").FindString(string(page))
	w := newWorld(t, nil)
	w.put("Notes/Tea.md", "The kettle is blue.\n")
	api := anthropictest.New(t, anthropictest.Options{Models: []string{"claude-sonnet-4-5"}})
	home := t.TempDir()
	run := func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "PATH=" + filepath.Dir(claude) + ":/usr/bin:/bin", "GATEHOUSE_KEY=" + w.key, "ANTHROPIC_API_KEY=test", "ANTHROPIC_BASE_URL=" + api.URL(),
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "NO_PROXY=127.0.0.1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	run(strings.ReplaceAll(add, "http://127.0.0.1:3333", "http://"+w.cfg.Addr))
	if out := run("claude mcp list"); !strings.Contains(out, "gatehouse") || !strings.Contains(out, "Connected") {
		t.Errorf("%s", out)
	}
	args, _ := json.Marshal(map[string]string{"path": "Notes/Tea.md"})
	api.Script(anthropictest.Reply{Text: []string{"I read it."}, Calls: []anthropictest.Call{{ID: "toolu_1", Name: "mcp__gatehouse__read_note", Fragments: []string{string(args)}}}},
		anthropictest.Say("It is blue."))
	if out := run(`claude -p "Which colour has the kettle?" --model claude-sonnet-4-5 --allowedTools mcp__gatehouse__read_note < /dev/null`); !strings.Contains(out, "It is blue.") {
		t.Errorf("%s", out)
	}
	all := api.Requests()
	if len(all) < 2 || !strings.Contains(string(all[len(all)-1].Body), "The kettle is blue.") {
		t.Errorf("the note did not reach the model: %d requests", len(all))
	}
}
