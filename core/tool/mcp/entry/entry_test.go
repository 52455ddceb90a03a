package entry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool/mcp/entry"
)

func parse(text string) ([]*entry.Server, []entry.Mistake) {
	return entry.Parse([]byte(text), []string{"TOKEN", "UNSET"}, []string{"TOKEN=open sesame", "HOME=/owner", "PASSWORD=hunter2"})
}

func TestTheFileOfClaudeCodeIsRead(t *testing.T) {
	got, mistakes := parse(`{
  "other": {"of": "somebody else"},
  "mcpServers": {
    "notes": {"type": "stdio", "command": "npx", "args": ["-y", "${UNSET:-server}"], "env": {"KEY": "${TOKEN}"}, "timeout": 2000},
    "site": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "trust": "vault"},
    "short": {"url": "http://127.0.0.1:1/"},
    "a b__c/ü": {"command": "x", "trust": "sandboxed"},
    "a.b_c": {"command": "x"}
  }
}`)
	if len(mistakes) > 0 || len(got) != 5 {
		t.Fatalf("%v %v", got, mistakes)
	}
	n, s := got[0], got[1]
	if n.Transport != entry.Stdio || n.Command != "npx" || !slices.Equal(n.Args, []string{"-y", "server"}) || n.Env["KEY"] != "open sesame" || n.Trust != core.Full || n.Timeout != 2*time.Second || n.Line != 4 {
		t.Errorf("%+v", n)
	}
	if s.Transport != entry.HTTP || s.URL != "https://example.org/mcp" || s.Headers["Authorization"] != "Bearer open sesame" || s.Trust != core.Vault {
		t.Errorf("%+v", s)
	}
	if got[2].Transport != entry.HTTP || got[3].Short != "a_b_c" || got[4].Short != "a_b_c-2" {
		t.Errorf("%+v %+v %+v", got[2], got[3], got[4])
	}
	if text := s.Redact("refused: Bearer open sesame"); strings.Contains(text, "sesame") {
		t.Error(text)
	}
	if got, mistakes := parse("{}"); len(got)+len(mistakes) > 0 {
		t.Errorf("%v %v", got, mistakes)
	}
}

func TestAMistakeIsReportedWithItsLineAndCostsItsServerOnly(t *testing.T) {
	for field, want := range map[string]string{
		`"comand": "x"`:                                    `"comand" is not known here: type, command, args, env, url, headers, trust and timeout are`,
		`"command": 7`:                                     "command must be a text",
		`"args": "x", "command": "x"`:                      "args must be a list of texts",
		`"command": "x", "command": "y"`:                   `"command" is set twice`,
		`"args": []`:                                       "command is missing",
		`"command": "x", "env": {"A B": "x"}`:              `env: "A B" is not a name of a variable, or its value holds a NUL character`,
		`"command": "x", "url": "http://h"`:                "command, args and env belong to servers of type stdio",
		`"command": "${PASSWORD}"`:                         "${PASSWORD} is not listed in GATEHOUSE_MCP_ENV",
		`"command": "x", "args": ["${PASSWORD:-x}"]`:       "${PASSWORD} is not listed in GATEHOUSE_MCP_ENV",
		`"command": "x", "env": {"A": "${HOME}"}`:          "${HOME} is not listed in GATEHOUSE_MCP_ENV",
		`"command": "${UNSET}"`:                            "${UNSET} is not set in the gateway's environment",
		`"command": "${}"`:                                 "${} is not the name of a variable",
		`"command": "x", "trust": "all"`:                   `trust level "all" is not one of sandboxed, vault, full`,
		`"command": "x", "timeout": 5`:                     "timeout is in milliseconds, from 1000 to 600000",
		`"type": "sse", "url": "http://h"`:                 `type "sse" was replaced by "http" in the protocol and is not spoken`,
		`"type": "carrier pigeon"`:                         `type is "stdio" or "http", not "carrier pigeon"`,
		`"url": "ftp://h"`:                                 "url must be http://host/path or https://host/path",
		`"url": "http://u:p@h"`:                            "url must hold no password: give it in headers",
		`"url": "http://h", "headers": {"A": "b\r\nC: d"}`: `headers: "A" is not a header's name, or its value is not of one line`,
		`"url": "http://h", "headers": {"A:": "b"}`:        `headers: "A:" is not a header's name, or its value is not of one line`,
	} {
		got, mistakes := parse("{\"mcpServers\": {\n\"good\": {\"command\": \"x\"},\n\n\"bad\":\n {\n" + field + "}}}")
		if len(got) != 1 || got[0].Name != "good" || len(mistakes) != 1 {
			t.Errorf("%s: %v, %v", field, got, mistakes)
			continue
		}
		if m := mistakes[0]; m.Server != "bad" || m.Text != want || m.Line != 4 && m.Line != 5 && m.Line != 6 {
			t.Errorf("%s: %+v, want %s", field, m, want)
		}
	}
}

func TestAFileThatIsNoListIsOneMistake(t *testing.T) {
	many := ""
	for i := range entry.MaxServers + 1 {
		many += fmt.Sprintf("%q: {\"command\": \"x\"},\n", fmt.Sprint("s", i))
	}
	for text, want := range map[string]string{
		"{\n\"mcpServers\": {\n,}}":       ".mcp.json:3: this is not JSON: invalid character ',' looking for beginning of object key string",
		"":                                ".mcp.json:1: this is not JSON: unexpected end of JSON input",
		"[]":                              ".mcp.json:1: an object is needed here: {…}",
		`{"servers": {}}`:                 `.mcp.json:1: "mcpServers" is missing`,
		"{\n\"mcpServers\": []}":          ".mcp.json:2: mcpServers: an object is needed here: {…}",
		`{"mcpServers": {"a": 7}}`:        ".mcp.json:1: a: an object is needed here: {…}",
		`{"mcpServers": {"": {}}}`:        ".mcp.json:1: a server's name is of 1 to 64 printable characters",
		strings.Repeat(" ", 300<<10):      ".mcp.json:1: the file is larger than 256 KiB",
		`{"mcpServers": {"a\u202eb": {}}`: ".mcp.json:1: this is not JSON: unexpected end of JSON input",
		"{\"mcpServers\": {\n" + strings.TrimSuffix(many, ",\n") + "}}": ".mcp.json:1: mcpServers: more than 32 entries",
	} {
		got, mistakes := parse(text)
		if len(mistakes) != 1 || mistakes[0].String() != want || len(got) > entry.MaxServers {
			t.Errorf("%.60q: %v, %d servers, want %s", text, mistakes, len(got), want)
		}
	}
}

func TestNamesOfToolsAreCleanedAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"read", "Read", "read file", "read.file", "read__file", "ü", "é", strings.Repeat("long", 40), strings.Repeat("long", 41), "", "日本"} {
		got := entry.ToolName("server-with-a-long-name-x", name, func(n string) bool { return seen[n] })
		if len(got) > 64 || strings.ContainsFunc(got, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r)
		}) || seen[got] || strings.Count(got, "__") != 2 {
			t.Errorf("%q: %q", name, got)
		}
		seen[got] = true
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"mcpServers": {"a": {"command": "${TOKEN:-x}", "args": ["y"], "env": {"A": "b"}}}}`)
	f.Add(`{"mcpServers": {"a": {"url": "http://h/", "headers": {"A": "b"}}, "b": 7}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, mistakes := parse(text)
		if len(got) > entry.MaxServers || len(mistakes) > entry.MaxServers+1 {
			t.Errorf("%d servers, %d mistakes", len(got), len(mistakes))
		}
		for _, s := range got {
			if strings.Contains(fmt.Sprint(*s), "hunter2") {
				t.Errorf("%q: a variable that is not listed", text)
			}
		}
	})
}
