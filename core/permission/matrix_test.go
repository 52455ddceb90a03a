package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// Tools of each kind, as the matrix names them.
var (
	readTool   = tool.Tool{Name: "Read", Kind: tool.Read}
	grepTool   = tool.Tool{Name: "Grep", Kind: tool.Read}
	findTool   = tool.Tool{Name: "Search", Kind: tool.Read}
	writeTool  = tool.Tool{Name: "Write", Kind: tool.Write}
	editTool   = tool.Tool{Name: "Edit", Kind: tool.Write}
	bashTool   = tool.Tool{Name: "Bash", Kind: tool.Shell, Isolated: true}
	fetchTool  = tool.Tool{Name: "WebFetch", Kind: tool.Network}
	searchTool = tool.Tool{Name: "WebSearch", Kind: tool.Network}
	taskTool   = tool.Tool{Name: "Task", Kind: tool.Inner}
	mcpAny     = tool.Tool{Name: "mcp__any__t", Kind: tool.MCP}
	mcpVault   = tool.Tool{Name: "mcp__vault__t", Kind: tool.MCP, Least: core.Vault}
	mcpGuest   = tool.Tool{Name: "mcp__guest__t", Kind: tool.MCP, Least: core.Sandboxed}
	mcpStdio   = tool.Tool{Name: "mcp__stdio__t", Kind: tool.MCP, Least: core.Sandboxed, Isolated: true}
)

// TestTheTrustMatrix is the table of what is offered to whom, and what becomes
// of a call. One row is one call; the columns are the levels:
//
//	full      the owner at full trust
//	vault     a person at trust vault
//	guest     a guest (number 7), nothing is open to guests
//	guest+    a guest, while guests may read Public/**
//
// "off" is not offered, "-" refused, "ask" asked, "yes" goes on. Nothing is
// configured, trust mode is off, and there is a sandbox.
func TestTheTrustMatrix(t *testing.T) {
	levels := []Profile{
		{User: 1, Trust: core.Full, Owner: true, Configured: ForOwner()},
		{User: 3, Trust: core.Vault, Configured: ForOwner()},
		{User: 7, Trust: core.Sandboxed, Configured: ForGuest(7)},
		{User: 7, Trust: core.Sandboxed, Configured: ForGuest(7), GuestRead: []string{"Public/**"}},
	}
	for _, row := range []struct {
		tool  tool.Tool
		what  string
		calls string // full vault guest guest+
	}{
		{readTool, "Notes/a.md", "      ask ask -   -  "},
		{readTool, "Public/a.md", "     ask ask -   yes"},
		{readTool, "Guests/7/a.md", "   ask ask yes yes"},
		{readTool, "Guests/8/a.md", "   ask ask -   -  "},
		{readTool, "Daily/a.md", "      ask ask -   -  "},
		{readTool, "Chat/a.md", "       ask ask -   -  "},
		{readTool, "/etc/hosts", "      ask -   -   -  "},
		{readTool, "/proc/1/environ", " -   -   -   -  "},
		{readTool, ".env", "            -   -   -   -  "},
		{readTool, "Guests/7/.env", "   -   -   -   -  "},
		{readTool, "Public/id_rsa", "   -   -   -   -  "},
		{readTool, ".git/objects/a", "  -   -   -   -  "},
		{readTool, ".git/hooks/a", "    -   -   -   -  "},
		{readTool, ".git/config", "     ask -   -   -  "},
		{readTool, ".git/HEAD", "       ask ask -   -  "},
		{readTool, ".parachute/x", "    -   -   -   -  "},
		{readTool, ".parachute/agents/a.md", "ask ask - -"},
		{readTool, ".claude/projects/a/b.jsonl", "- - - -"},
		{readTool, ".claude/x.md", "    ask ask -   -  "},
		{readTool, "Chat/sessions.db", "-   -   -   -  "},
		{readTool, "/home/x/.ssh/config", "- - - -"},
		{readTool, "../x", "            -   -   -   -  "},
		{grepTool, ".", "               ask ask -   -  "},
		{grepTool, "Guests/7", "        ask ask yes yes"},
		{grepTool, "Public", "          ask ask -   yes"},
		{findTool, ".", "               yes yes -   -  "},
		{findTool, "Guests/7", "        yes yes yes yes"},
		{findTool, "Guests/8", "        yes yes -   -  "},
		{findTool, "Public", "          yes yes -   yes"},
		{findTool, ".git/hooks", "      -   -   -   -  "},
		{writeTool, "Notes/a.md", "     ask ask -   -  "},
		{writeTool, "Chat/artifacts/a", "yes yes -  -  "},
		{writeTool, "Chat/artifacts/a/b", "ask ask - -"},
		{writeTool, "Guests/7/a.md", "  ask ask yes yes"},
		{writeTool, "Guests/8/a.md", "  ask ask -   -  "},
		{writeTool, "Public/a.md", "    ask ask -   -  "},
		{writeTool, ".mcp.json", "      ask -   -   -  "},
		{writeTool, "CLAUDE.md", "      ask -   -   -  "},
		{writeTool, "Notes/AGENTS.md", "ask -   -   -  "},
		{writeTool, ".claude/x.md", "   ask -   -   -  "},
		{writeTool, ".parachute/agents/a.md", "ask - - -"},
		{writeTool, ".git/config", "    ask -   -   -  "},
		{writeTool, ".git/hooks/a", "   -   -   -   -  "},
		{writeTool, "Daily/.agents/a", "ask -   -   -  "},
		{writeTool, ".parachuteignore", "ask -  -   -  "},
		{writeTool, "Guests/7/CLAUDE.md", "ask - - -"},
		{writeTool, "/tmp/x", "         ask -   -   -  "},
		{editTool, "Notes/a.md", "      ask ask -   -  "},
		{editTool, "Guests/7/a.md", "   ask ask yes yes"},
		{bashTool, "ls", "              ask ask ask ask"},
		{bashTool, "sudo ls", "         -   -   -   -  "},
		{fetchTool, "", "               ask ask yes off"},
		{searchTool, "", "              yes yes yes off"},
		{taskTool, "", "                yes yes yes yes"},
		{mcpAny, "", "                  yes off off off"},
		{mcpVault, "", "                yes yes off off"},
		{mcpGuest, "", "                yes yes yes yes"},
		{mcpGuest, ".env", "            -   -   -   -  "},
	} {
		for i, want := range strings.Fields(row.calls) {
			p := levels[i]
			q := question{p: p, t: row.tool, isolation: true, input: json.RawMessage(`{}`), a: access(row.tool, row.what)}
			if row.what != "" && row.tool.Kind == tool.MCP {
				q.input, _ = json.Marshal(map[string]any{"options": []string{row.what}})
			}
			got := map[Verdict]string{Deny: "-", MustAsk: "ask", Allow: "yes"}[q.decide().Verdict]
			if !Offered(p, row.tool, true).OK {
				if got != "-" {
					t.Errorf("%s is not offered to %d and would be allowed", row.tool.Name, i)
				}
				got = "off"
			}
			if got != want {
				t.Errorf("%s %q at column %d: %s, want %s (%+v)", row.tool.Name, row.what, i, got, want, q.decide())
			}
		}
	}
}

func access(t tool.Tool, what string) tool.Access {
	switch {
	case t.Kind == tool.Read:
		return tool.Access{Read: []string{what}}
	case t.Name == "Edit":
		return tool.Access{Read: []string{what}, Write: []string{what}}
	case t.Kind == tool.Write:
		return tool.Access{Write: []string{what}}
	case t.Kind == tool.Shell:
		return tool.Access{Command: what}
	}
	return tool.Access{}
}

// Missing isolation takes away what needs it, and says why; it never makes it
// run without.
func TestMissingIsolationTakesItsToolsAway(t *testing.T) {
	for _, tl := range []tool.Tool{bashTool, mcpStdio} {
		for _, level := range []core.Trust{core.Sandboxed, core.Vault} {
			p := Profile{User: 7, Trust: level, Auto: true, Configured: Configured{Bash: Commands{All: true}}}
			if o := Offered(p, tl, false); o.OK || !strings.Contains(o.Why, "sandbox") {
				t.Errorf("%s at %v without a sandbox: %+v", tl.Name, level, o)
			}
			q := question{p: p, t: tl, a: access(tl, "ls"), input: json.RawMessage(`{}`)}
			if d := q.decide(); d.Verdict != Deny || d.Rule != RuleNotOffered {
				t.Errorf("%s at %v without a sandbox: %+v", tl.Name, level, d)
			}
			if !Offered(p, tl, true).OK {
				t.Errorf("%s at %v with a sandbox is not offered", tl.Name, level)
			}
		}
		if !Offered(Profile{Trust: core.Full}, tl, false).OK {
			t.Errorf("%s at full needs no sandbox", tl.Name)
		}
	}
	for _, tl := range []tool.Tool{readTool, writeTool, bashTool, fetchTool, taskTool, mcpGuest, {Name: "X"}} {
		if Offered(Profile{Trust: core.Stranger}, tl, true).OK || Offered(Profile{Trust: 9}, tl, true).OK {
			t.Errorf("%s is offered to strangers", tl.Name)
		}
	}
	if Offered(Profile{Trust: core.Full}, tool.Tool{Name: "X", Kind: "new"}, true).OK {
		t.Error("a tool of an unknown kind is offered")
	}
}

// The order: what stands first decides, whatever follows would say.
func TestTheOrderOfDecisions(t *testing.T) {
	open := Configured{Read: []string{"**"}, Write: []string{"**"}, Bash: Commands{All: true}}
	everything := []GrantRow{
		{Session: "s", User: 1, Trust: core.Full, Kind: "read", Pattern: "**/*"},
		{Session: "s", User: 1, Trust: core.Full, Kind: "write", Pattern: "**/*"},
		{Session: "s", User: 1, Trust: core.Full, Kind: "bash", Pattern: "cat * ; ls *"},
	}
	owner := Profile{User: 1, Trust: core.Full, Session: "s", Owner: true}
	with := func(change func(*Profile)) Profile { p := owner; change(&p); return p }
	for _, c := range []struct {
		about string
		p     Profile
		t     tool.Tool
		what  string
		want  Verdict
		rule  string
	}{
		{"the deny list stands before trust mode, permissions and grants", with(func(p *Profile) { p.Auto, p.Configured = true, open }), readTool, ".env", Deny, RuleDenyList},
		{"a dangerous command too", with(func(p *Profile) { p.Auto, p.Configured = true, open }), bashTool, "rm -rf /", Deny, RuleDangerous},
		{"what is forbidden is said before what is not offered", with(func(p *Profile) { p.Trust = core.Stranger }), bashTool, "sudo ls", Deny, RuleDangerous},
		{"a file outside stands before trust mode", with(func(p *Profile) { p.Trust, p.Auto = core.Vault, true }), readTool, "/etc/hosts", Deny, RuleArea},
		{"so does the write-deny list", with(func(p *Profile) { p.Trust, p.Auto = core.Vault, true }), writeTool, "CLAUDE.md", Deny, RuleWriteDenyList},
		{"a fetch of what nobody named asks", owner, fetchTool, "", MustAsk, RuleUnnamed},
		{"in trust mode too", with(func(p *Profile) { p.Auto = true }), fetchTool, "", MustAsk, RuleUnnamed},
		{"a search is always allowed", owner, searchTool, "", Allow, RuleAlways},
		{"trust mode", with(func(p *Profile) { p.Auto = true }), writeTool, "Notes/a.md", Allow, RuleTrustMode},
		{"what commands the gateway asks in trust mode", with(func(p *Profile) { p.Auto, p.Session = true, "t" }), writeTool, ".mcp.json", MustAsk, RuleAsk},
		{"and agents' instructions", with(func(p *Profile) { p.Auto, p.Session = true, "t" }), writeTool, "Projects/x/CLAUDE.md", MustAsk, RuleAsk},
		{"and what starts with a shell", with(func(p *Profile) { p.Auto = true }), writeTool, "/home/olga/.bashrc", MustAsk, RuleAsk},
		{"and a hidden folder outside", with(func(p *Profile) { p.Auto = true }), writeTool, "/home/olga/.config/autostart/x.desktop", MustAsk, RuleAsk},
		{"and the system's files", with(func(p *Profile) { p.Auto = true }), writeTool, "/etc/cron.d/x", MustAsk, RuleAsk},
		{"and what macOS starts", with(func(p *Profile) { p.Auto = true }), writeTool, "/Users/olga/Library/LaunchAgents/x.plist", MustAsk, RuleAsk},
		{"a temporary file of the system does not", with(func(p *Profile) { p.Auto = true }), writeTool, "/var/tmp/x.md", Allow, RuleTrustMode},
		{"permissions open it", with(func(p *Profile) { p.Auto, p.Session, p.Configured.Write = true, "t", []string{"Projects/**"} }), writeTool, "Projects/x/CLAUDE.md", Allow, RuleTrustMode},
		{"and so does a grant", with(func(p *Profile) { p.Auto = true }), writeTool, ".mcp.json", Allow, RuleTrustMode},
		{"a plain file outside does not ask", with(func(p *Profile) { p.Auto = true }), writeTool, "/home/olga/list.md", Allow, RuleTrustMode},
		{"nor does reading it", with(func(p *Profile) { p.Auto = true }), readTool, ".mcp.json", Allow, RuleTrustMode},
		{"trust mode stands before permissions", with(func(p *Profile) { p.Auto, p.Configured = true, open }), readTool, "a", Allow, RuleTrustMode},
		{"the session's permissions", with(func(p *Profile) { p.Configured = open }), readTool, "a", Allow, RuleConfigured},
		{"a grant", owner, readTool, "Notes/a.md", Allow, RuleGrant},
		{"a grant for commands", owner, bashTool, "ls; cat a.md", Allow, RuleGrant},
		{"all commands of a line need one", owner, bashTool, "ls; touch a", MustAsk, RuleAsk},
		{"a redirection is not covered by its command's grant", owner, bashTool, "cat a > b", MustAsk, RuleAsk},
		{"another session's grant is none", with(func(p *Profile) { p.Session = "t" }), readTool, "Notes/a.md", MustAsk, RuleAsk},
		{"nor another person's", with(func(p *Profile) { p.User = 2 }), readTool, "Notes/a.md", MustAsk, RuleAsk},
		{"nor another level's", with(func(p *Profile) { p.Trust = core.Vault }), readTool, "Notes/a.md", MustAsk, RuleAsk},
		{"a grant in the vault opens nothing outside", owner, readTool, "/etc/hosts", MustAsk, RuleAsk},
		{"what hides asks, in trust mode and with all commands allowed", with(func(p *Profile) { p.Auto, p.Configured = true, open }), bashTool, "$x", MustAsk, RuleHidden},
		{"a secret that a command names asks at full", with(func(p *Profile) { p.Auto, p.Configured = true, open }), bashTool, "cat .env", MustAsk, RuleSecretNamed},
		{"and is not there for a shell below", with(func(p *Profile) { p.Trust, p.Auto = core.Vault, true }), bashTool, "cat .env", Allow, RuleTrustMode},
		{"nothing named is nothing allowed", with(func(p *Profile) { p.Auto = true }), tool.Tool{Name: "Read", Kind: tool.Read}, "", Deny, RuleArea},
	} {
		q := question{p: c.p, t: c.t, a: access(c.t, c.what), grants: everything, isolation: true, input: json.RawMessage(`{}`)}
		if c.what == "" {
			q.a = tool.Access{}
		}
		if d := q.decide(); d.Verdict != c.want || d.Rule != c.rule {
			t.Errorf("%s: %v by %s, want %v by %s (%s)", c.about, d.Verdict, d.Rule, c.want, c.rule, d.Text)
		}
	}
}

func TestMCPArgumentsAreComparedWithTheDenyListWhateverTheirForm(t *testing.T) {
	many := slices.Repeat([]string{"a.md"}, 9000)
	for about, c := range map[string]struct {
		input any
		want  Verdict
	}{
		"a name":                       {map[string]any{"path": ".env"}, Deny},
		"a control character":          {map[string]any{"path": "x\t/../.env"}, Deny},
		"a name for each line":         {map[string]any{"paths": "a.md\n.env\r\nb.md"}, Deny},
		"a long way":                   {map[string]any{"path": strings.Repeat("./", 3000) + ".env"}, Deny},
		"the last of many":             {map[string]any{"paths": append(slices.Clone(many), ".env")}, Deny},
		"more than can be compared":    {map[string]any{"paths": slices.Repeat(many, 2)}, Deny},
		"what Git is to ignore":        {map[string]any{"path": ".gitignore", "content": "node_modules/\n.env\n"}, Allow},
		"the same in another argument": {map[string]any{"path": ".gitignore", "lines": "node_modules/\n.env\n*.log\n"}, Allow},
		"a table":                      {map[string]any{"rows": "id_customer,qty\n7,3\n"}, Allow},
		"a long table":                 {map[string]any{"rows": strings.Repeat("7,3\n", 20_000)}, Allow},
		"many that are allowed":        {map[string]any{"paths": many}, Allow},
		"a text that speaks of it":     {map[string]any{"text": "Copy the file\n.env\nto the server."}, Allow},
		"data":                         {map[string]any{"data": strings.Repeat("QUJD", 5000)}, Allow},
		"a text with a path in a line": {map[string]any{"text": "# Notes\n\nsee docs/a.md and more\n"}, Allow},
	} {
		raw, err := json.Marshal(c.input)
		if err != nil {
			t.Fatal(err)
		}
		q := question{p: Profile{User: 1, Trust: core.Full, Owner: true, Auto: true}, t: mcpVault, input: raw, isolation: true}
		if d := q.decide(); d.Verdict != c.want {
			t.Errorf("%s: %v by %s, want %v", about, d.Verdict, d.Rule, c.want)
		}
	}
}

func TestARefusalExplainsItself(t *testing.T) {
	p := Profile{User: 7, Trust: core.Sandboxed, GuestRead: []string{"Public/**"}}
	for _, c := range []struct {
		t     tool.Tool
		what  string
		wants []string
	}{
		{writeTool, "Daily/today.md", []string{"Daily/today.md", "sandboxed", "Guests/7/", "Public/**", "owner"}},
		{readTool, ".env", []string{".env", "deny list"}},
		{bashTool, "sudo ls", []string{"sudo"}},
		{fetchTool, "", []string{"WebFetch", "Public/**"}},
		{mcpVault, "", []string{"vault", "sandboxed"}},
	} {
		d := question{p: p, t: c.t, a: access(c.t, c.what), isolation: true}.decide()
		for _, w := range c.wants {
			if d.Verdict != Deny || !strings.Contains(d.Text, w) {
				t.Errorf("%s %s: %q lacks %q", c.t.Name, c.what, d.Text, w)
			}
		}
	}
}

func TestPathsInMCPArgumentsAreHeldAgainstTheDenyList(t *testing.T) {
	for input, want := range map[string]bool{
		`{"path":"Notes/a.md"}`:                         true,
		`{"path":".env"}`:                               false,
		`{"path":"./x/../.env"}`:                        false,
		`{"path":"Notes/.ENV"}`:                         false,
		`{"uri":"file:///home/x/.ssh/id_rsa"}`:          false,
		`{"uri":"FILE:///home/x/%2essh/config"}`:        false,
		`{"uri":"https://example.com/.env"}`:            true,
		`{"path":"C:\\Users\\x\\.ssh\\config"}`:         false,
		`{"path":"%2eenv"}`:                             false,
		`{"path":"~/.aws/credentials"}`:                 false,
		`{"a":{"b":[1,true,null,{"c":"a/id_rsa"}]}}`:    false,
		`{"files":{".env":"x"}}`:                        false,
		`{"path":" .env "}`:                             false,
		`{"text":"Do not commit the file .env please"}`: true,
		`{"text":"line one\nsee .env\nline three"}`:     true,
		`{"path":".parachute/bots.yaml"}`:               false,
		`{"path":"private/x"}`:                          false,
		`{"path":"x://../.env"}`:                        false, // a server takes "x:" and ".." away
		`{"path":"https://../.env"}`:                    false,
		`{"path":"https://a/%2e%2e/../../private/x"}`:   false,
		`{"path":"https:\\/..\\..\\.env"}`:              false,
		`{"path":"/home/me/x://../.ssh/config"}`:        false,
		`{"path":"vault://.env"}`:                       false,
		`{"uri":"file:///v/server.key?x"}`:              false,
		`{"uri":"file:///v/server.key#x"}`:              false,
		`{"uri":"file:/v/.env"}`:                        false,
		`{"uri":"file://localhost/v/.env"}`:             false,
		`{"uri":"https://example.com/a?next=../.env"}`:  true,
		`{"uri":"https://example.com/server.key?x"}`:    true,
		`{"time":"12:30","note":"a: b.md"}`:             true,
		`".env"`:                                        false,
		`not json`:                                      true,
	} {
		q := question{p: Profile{User: 1, Trust: core.Full, Auto: true}, t: mcpAny, input: json.RawMessage(input), ignore: []string{"private/"}}
		if d := q.decide(); (d.Verdict == Allow) != want {
			t.Errorf("%s: %v by %s", input, d.Verdict, d.Rule)
		}
	}
}

func TestParachuteignore(t *testing.T) {
	lines := []string{"# secrets", "", "*.secret", "/top.md", "private/", "Notes/**/draft-*", "!Notes/x/draft-ok.md", `\#odd`, "Deep/*/b", "[broken", "Locked/**", "!Locked/a.md"}
	read, write := Profile{User: 1, Trust: core.Full}.Bounds(lines)
	for name, want := range map[string]bool{
		"a.md": true, "a.secret": false, "x/y/a.secret": false, "A.SECRET": false, "a.secret/b": false,
		"top.md": false, "x/top.md": true, "private": false, "private/a": false, "x/private/a": false, "privateer/a": true,
		"Notes/a": true, "Notes/draft-1": false, "Notes/x/y/draft-2": false, "Notes/x/draft-ok.md": true,
		"#odd": false, "Deep/a/b": false, "Deep/a/b/c": false, "Deep/a/c": true, "Deep/a/x/b": true, "[broken": false,
		"Locked/a.md": false, "# secrets": true, ".": true,
	} {
		if read(name) != want || write(name) != want {
			t.Errorf("%q: read %v, write %v, want %v", name, read(name), write(name), want)
		}
	}
}

func TestConfiguredPermissionsOfASession(t *testing.T) {
	for metadata, want := range map[string]string{
		``:                                      `{"read":null,"write":["Chat/artifacts/*"],"bash":false}`,
		`{}`:                                    `{"read":null,"write":["Chat/artifacts/*"],"bash":false}`,
		`{"permissions":{"read":["Notes/**"]}}`: `{"read":["Notes/**"],"write":["Chat/artifacts/*"],"bash":false}`,
		`{"permissions":{"write":[],"bash":true}}`:        `{"read":null,"write":[],"bash":true}`,
		`{"permissions":{"bash":["git *"]},"other":1}`:    `{"read":null,"write":["Chat/artifacts/*"],"bash":["git *"]}`,
		`{"permissions":{"bash":"yes"}}`:                  `{"read":null,"write":null,"bash":false}`,
		`{"permissions":{"read":"**"}}`:                   `{"read":null,"write":null,"bash":false}`,
		`{"permissions":null}`:                            `{"read":null,"write":["Chat/artifacts/*"],"bash":false}`,
		`[`:                                               `{"read":null,"write":null,"bash":false}`,
		`{"permissions":{"trust_mode":true,"bash":null}}`: `{"read":null,"write":["Chat/artifacts/*"],"bash":false}`,
	} {
		got, err := json.Marshal(ParseConfigured(json.RawMessage(metadata), ForOwner()))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", metadata, got, err, want)
		}
	}
	if got := ForGuest(7); fmt.Sprint(got) != "{[Guests/7/**] [Guests/7/**] {false []}}" {
		t.Errorf("a guest has %v", got)
	}
	if got := ForGuest(0); got.Read != nil || got.Write != nil {
		t.Errorf("nobody has %v", got)
	}
}
