package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"gatehouse/core/permission"
)

// explain says which rule decides: without a gateway, a vault or settings, and
// with a session's permissions through the gateway's files.
func TestExplainSaysWhichRuleDecides(t *testing.T) {
	h := newHome(t, nil)
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"git status && rm -rf ~"}, 0, []string{"deny", "dangerous", "runs: git status"}},
		{[]string{`echo "sudo"`}, 0, []string{"allow", "trust_mode"}},
		{[]string{"ls", "--ask"}, 0, []string{"ask"}},
		{[]string{"cat .env"}, 0, []string{"ask", "secret_named"}},
		{[]string{"--tool", "Read", "Public/tea.md", "--as", "guest"}, 0, []string{"allow", "configured"}},
		{[]string{"--tool", "Write", "Daily/today.md", "--as", "guest", "--user", "7"}, 0, []string{"deny", "area", "Guests/7/"}},
		{[]string{"--tool", "Write", "CLAUDE.md", "--trust", "vault"}, 0, []string{"deny", "write_deny_list"}},
		{[]string{"--tool", "WebFetch", "https://example.com", "--as", "guest"}, 0, []string{"deny", "not_offered", "Public/**"}},
		{[]string{"--json", "ls"}, 0, []string{`"decision": "allow"`}},
		{nil, 2, []string{"--stdin"}},
		{[]string{"ls", "--trust", "root"}, 2, []string{"sandboxed"}},
		{[]string{"ls", "--session", "nowhere"}, 1, []string{"session"}},
	} {
		code, out, errs := h.run(append([]string{"explain"}, c.args...)...)
		for _, s := range c.says {
			if code != c.code || !strings.Contains(out+errs, s) {
				t.Errorf("explain %q: %d, %q lacks %q", c.args, code, out+errs, s)
			}
		}
	}
}

// One answer per line, in step, of three members; a line that makes no sense
// is no.
func TestExplainAnswersProgramsLineByLine(t *testing.T) {
	h := newHome(t, nil)
	delete(h.env, "GATEHOUSE_VAULT_PATH")
	h.env["GATEHOUSE_ADDR"] = "nowhere" // works without settings
	lines := []string{
		`{"tool":"Bash","input":{"command":"sh -c 'sudo ls'"},"as":"owner","trust":"full"}`,
		`{"tool":"Bash","input":{"command":"echo \"sudo\" | cat"}}`,
		`{"tool":"Bash","input":{"command":"$x"},"as":"guest","trust":"sandboxed"}`,
		`{"tool":"Read","input":{"file_path":"a/.env"},"as":"guest","trust":"sandboxed"}`,
		`{"tool":"Read","input":{"file_path":"Guests/2/a.md"},"as":"guest","trust":"sandboxed"}`,
		`{"tool":"mcp__x__y","input":{"path":"id_rsa"}}`,
		`nonsense`,
		`{"tool":"Read","input":{"file_path":"a"},"trust":"root"}`,
		`{"tool":"Dance","input":{}}`,
	}
	want := []string{"deny dangerous", "allow trust_mode", "ask hidden", "deny deny_list", "allow configured", "deny deny_list", "deny invalid", "deny invalid", "deny not_offered"}
	p := h.start(func(c *exec.Cmd) { c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n") }, "explain", "--json", "--stdin")
	<-p.done
	got := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d lines: %q %s", len(got), len(want), got, p.err.String())
	}
	for i, line := range got {
		var members map[string]json.RawMessage
		var r permission.Reason
		if json.Unmarshal([]byte(line), &members) != nil || json.Unmarshal([]byte(line), &r) != nil || len(members) != 3 || r.Commands == nil {
			t.Fatalf("%s is answered by %q", lines[i], line)
		}
		if r.Decision+" "+r.Rule != want[i] {
			t.Errorf("%s is answered by %s, want %s", lines[i], line, want[i])
		}
	}
	if !strings.Contains(got[1], `"commands":["echo sudo","cat"]`) {
		t.Errorf("the commands are %s", got[1])
	}
}
