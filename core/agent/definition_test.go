package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/agent"
)

func TestAnAgentsFileReportsWhoAnswers(t *testing.T) {
	whole := `---
name: Tea Expert
description: Knows tea.
model: anthropic/claude-x
system_prompt: |
  You know tea.
tools: [Read, Grep, mcp__notes]
mcpServers:
  - notes
trust_level: vault
permissions:
  read: ["Notes/**"]
  write: []
  bash: ["ls *"]
context:
  include: ["Tea/*.md"]
  exclude: ["Tea/old*"]
  maxTokens: 500
---

Green tea is not boiled.
`
	want := agent.Agent{
		Name: "Tea Expert", Description: "Knows tea.", File: ".parachute/agents/tea.md", Model: "anthropic/claude-x",
		Prompt: "You know tea.\n\nGreen tea is not boiled.", Tools: []string{"Read", "Grep", "mcp__notes"}, Servers: []string{"notes"},
		Permissions: &agent.Permissions{Read: []string{"Notes/**"}, Write: []string{}, Bash: &agent.Commands{Patterns: []string{"ls *"}}},
		Context:     agent.Context{Include: []string{"Tea/*.md"}, Exclude: []string{"Tea/old*"}, MaxTokens: 500}, Trust: core.Vault,
	}
	nested := strings.Replace(whole, "---\n", "---\ntags: [obsidian]\nagent:\n", 1)
	head, body, _ := strings.Cut(strings.TrimPrefix(nested, "---\ntags: [obsidian]\nagent:\n"), "\n---\n")
	nested = "---\ntags: [obsidian]\nagent:\n  " + strings.ReplaceAll(head, "\n", "\n  ") + "\n---\n" + body
	for form, text := range map[string]string{"flat": whole, "nested": nested, "from Windows": "\ufeff" + strings.ReplaceAll(whole, "\n", "\r\n")} {
		_, a := open(t, map[string]string{".parachute/agents/tea.md": text})
		if f := a.Faults(); len(f) != 0 {
			t.Fatalf("%s: %v", form, f)
		}
		for _, name := range []string{"Tea Expert", "tea", "TEA EXPERT "} {
			got, warnings := a.Choose(name)
			if !cmp.Equal(got, want) || len(warnings) != 0 {
				t.Errorf("%s, %q: %s %v", form, name, cmp.Diff(want, got), warnings)
			}
		}
	}
}

func TestShortFormsOfAnAgentsFile(t *testing.T) {
	_, a := open(t, map[string]string{
		".parachute/agents/body.md":   "---\ndescription: x\n---\nThe body is the prompt.\n",
		".parachute/agents/words.md":  "---\ntools: Read, Grep\nwrite_permissions: [\"Notes/*\"]\nmcpServers: all\n---\nx",
		".parachute/agents/none.md":   "---\ntools: []\npermissions: {bash: true}\n---\nx",
		".parachute/agents/silent.md": "---\nmodel: local/quote\n---\n",
		".parachute/agents/README.md": "how to",
		".parachute/agents/_draft.md": "draft",
		".parachute/agents/notes.txt": "text",
	})
	if f := a.Faults(); len(f) != 0 {
		t.Fatal(f)
	}
	if got := a.Names(); !cmp.Equal(got, []string{"vault-agent", "body", "none", "silent", "words"}) {
		t.Error(got)
	}
	body, _ := a.Choose("body")
	if body.Prompt != "The body is the prompt." || body.Tools != nil || body.Permissions != nil || body.Trust != core.Stranger {
		t.Errorf("%+v", body)
	}
	words, _ := a.Choose("words")
	if !cmp.Equal(words.Tools, []string{"Read", "Grep"}) || words.Servers != nil || !cmp.Equal(words.Permissions, &agent.Permissions{Write: []string{"Notes/*"}}) {
		t.Errorf("%+v", words)
	}
	none, _ := a.Choose("none")
	if none.Tools == nil || none.Offers("Read") || !none.Permissions.Bash.All {
		t.Errorf("%+v", none)
	}
	silent, _ := a.Choose("silent")
	if p, about := prompt(t, a, agent.PromptInput{Agent: silent}); !strings.HasPrefix(p, agent.Default("", "").Prompt) || about.PromptSource != "default" || about.AgentName != "silent" {
		t.Errorf("an agent without words: %+v %s", about, p)
	}
}

func TestToolsOfAnAgentOnlyTakeAway(t *testing.T) {
	for _, c := range []struct {
		agent agent.Agent
		yes   string
		no    string
	}{
		{agent.Agent{}, "Read Bash mcp__a__x", ""},
		{agent.Agent{Tools: []string{}}, "", "Read Bash mcp__a__x"},
		{agent.Agent{Tools: []string{"Read"}}, "Read", "Bash ReadX mcp__a__x"},
		{agent.Agent{Tools: []string{"mcp__a"}}, "mcp__a__x mcp__a__y", "Read mcp__b__x mcp__ab__x"},
		{agent.Agent{Tools: []string{"mcp__a__*"}}, "mcp__a__x", "mcp__b__x"},
		{agent.Agent{Tools: []string{"Read", "mcp__a__x"}}, "Read mcp__a__x", "mcp__a__y"},
		{agent.Agent{Servers: []string{"a"}}, "Read mcp__a__x", "mcp__b__x"},
		{agent.Agent{Servers: []string{}}, "Read", "mcp__a__x"},
		{agent.Agent{Tools: []string{"Read"}, Servers: []string{"a"}}, "Read mcp__a__x", "Bash mcp__b__x"},
		{agent.Agent{Tools: []string{"mcp__b__x"}, Servers: []string{"a"}}, "mcp__a__x", "mcp__b__x Read"},
	} {
		for _, tool := range strings.Fields(c.yes) {
			if !c.agent.Offers(tool) {
				t.Errorf("%+v does not offer %s", c.agent, tool)
			}
		}
		for _, tool := range strings.Fields(c.no) {
			if c.agent.Offers(tool) {
				t.Errorf("%+v offers %s", c.agent, tool)
			}
		}
	}
}

func TestABrokenFileIsReportedByLineWithoutItsTextAndTheRestWorks(t *testing.T) {
	const secret = "s3cret-value"
	long := strings.Repeat("x", 110<<10)
	for _, c := range []struct {
		text string
		line int
		says string
	}{
		{"no frontmatter " + secret, 1, "does not begin with frontmatter"},
		{"---\nname: x\n", 1, "no end"},
		{"---\nname: x\ntool: " + secret + "\n---\n", 3, "unknown field"},
		{"---\nname: x\n  b: [" + secret + "\n---\n", 2, "not YAML"},
		{"---\nname: x\nname: " + secret + "\n---\n", 3, "not YAML"},
		{"---\nname: [" + secret + "]\n---\n", 2, "a list is set where text is expected"},
		{"---\nname: ../" + secret + "\n---\n", 2, "letters, digits"},
		{"---\n\ntools:\n---\n", 3, "has no value"},
		{"---\ntools: {a: " + secret + "}\n---\n", 2, "where text is expected"},
		{"---\npermissions:\n  read: [a]\n  wrote: [b]\n---\n", 4, "unknown field"},
		{"---\npermissions:\n  write:\n---\n", 3, "has no value"},
		{"---\npermissions:\n  write: ['/etc/**']\n---\n", 3, "not relative to the vault"},
		{"---\npermissions:\n  read: ['a/../../b']\n---\n", 3, "not relative to the vault"},
		{"---\nwrite_permissions: ['a[']\n---\n", 2, "glob that is none"},
		{"---\nwrite_permissions: [a]\npermissions: {read: [b]}\n---\n", 2, "keep one"},
		{"---\nname: x\ntrust_level: " + secret + "\n---\n", 3, "not one of sandboxed"},
		{"---\ncontext:\n  include: [b]\n  maxTokens: 1000000\n---\n", 4, "not between"},
		{"---\ncontext:\n  maxTokens: many\n---\n", 3, "where a whole number is expected"},
		{"---\ncontext: {include: ['../x']}\n---\n", 2, "not relative"},
		{"---\ntags: x\nagent:\n  name: x\n  disallowedTools: " + secret + "\n---\n", 5, "unknown field"},
		{"---\nagent:\n  name: x\ntools: [Read]\n---\n", 4, "belongs below it"},
		{"---\nagent:\n---\n", 2, "no fields"},
		{"---\nagent: " + secret + "\n---\n", 2, "expected"},
		{"---\ndescription: &a x\nname: *a\n---\n", 2, "anchors"},
		{"---\n- a\n- b\n---\n", 2, "expected"},
		{"---\nname: x\n---\n" + long, 0, "longer than"},
		{"---\n#" + long[:40<<10] + "\n---\n", 1, "longer than"},
	} {
		_, a := open(t, map[string]string{".parachute/agents/b.md": c.text, ".parachute/agents/good.md": "---\nname: good\n---\nhello"})
		f := a.Faults()
		if len(f) != 1 || f[0].File != ".parachute/agents/b.md" || f[0].Line != c.line || !strings.Contains(f[0].Text, c.says) {
			t.Errorf("%.60q: %+v", c.text, f)
			continue
		}
		if s := f[0].String(); strings.Contains(s, secret) || strings.Contains(s, "interface") || strings.Contains(s, "\n") {
			t.Errorf("%.60q: %s", c.text, s)
		}
		if who, warnings := a.Choose("good"); who.Prompt != "hello" || len(warnings) != 0 {
			t.Errorf("%.60q: the other agent is gone: %v", c.text, warnings)
		}
	}
}

func TestAnUnknownAgentIsTheDefaultWithAWarningAndABrokenOneIsSandboxedToo(t *testing.T) {
	_, a := open(t, map[string]string{".parachute/agents/broken.md": "---\ntools: 1: 2\n---\n"})
	for name, want := range map[string]core.Trust{"": core.Full, "vault-agent": core.Full, "nobody": core.Full, "broken": core.Sandboxed} {
		r := a.Role(name, "")
		if r.Agent.Name != "vault-agent" || r.Trust != want || (len(r.Warnings) == 0) != (name == "" || name == "vault-agent") {
			t.Errorf("%q: %+v", name, r)
		}
		if name == "broken" && !strings.Contains(r.Warnings[0].Message, ".parachute/agents/broken.md:2") {
			t.Errorf("%+v", r.Warnings)
		}
	}
}

func TestTheSettingNamesTheAgentOfSessionsThatNameNone(t *testing.T) {
	v, _ := open(t, map[string]string{
		".parachute/agents/house.md": "---\nname: house\n---\nhouse", ".parachute/agents/other.md": "---\nname: other\n---\nother",
	})
	a := agent.New(v, agent.Options{Default: "house"})
	for name, want := range map[string]string{"": "house", "vault-agent": "house", "other": "other", "nobody": "vault-agent"} {
		if who, _ := a.Choose(name); who.Name != want {
			t.Errorf("%q: %s", name, who.Name)
		}
	}
	a = agent.New(v, agent.Options{Default: "gone"})
	if who, warnings := a.Choose(""); who.Name != "vault-agent" || len(warnings) != 1 {
		t.Errorf("%+v %v", who, warnings)
	}
}

func TestAFileMayReplaceTheAgentThatEveryVaultHas(t *testing.T) {
	_, a := open(t, map[string]string{".parachute/agents/vault-agent.md": "---\ndescription: mine\n---\nI am the house."})
	for _, name := range []string{"", "vault-agent", "nobody"} {
		if who, _ := a.Choose(name); who.Prompt != "I am the house." {
			t.Errorf("%q: %+v", name, who)
		}
	}
	if got := a.Names(); !cmp.Equal(got, []string{"vault-agent"}) {
		t.Error(got)
	}
}

func TestNamesAreTakenOnce(t *testing.T) {
	_, a := open(t, map[string]string{
		".parachute/agents/a.md": "---\nname: Same\n---\nfirst", ".parachute/agents/b.md": "---\nname: same\n---\nsecond", ".parachute/agents/same.md": "---\nname: c\n---\nthird",
		".parachute/skills/a.md": "---\nname: s\ndescription: d\n---\nfirst", ".parachute/skills/b.md": "---\nname: S\ndescription: d\n---\nsecond",
	})
	if f := a.Faults(); len(f) != 3 || f[0].File != ".parachute/agents/b.md" || f[1].File != ".parachute/agents/same.md" || f[2].File != ".parachute/skills/b.md" {
		t.Error(f)
	}
	if who, _ := a.Choose("same"); who.Prompt != "first" {
		t.Errorf("%+v", who)
	}
}

func TestSkillsAreReportedFromTheirTrustOn(t *testing.T) {
	_, a := open(t, map[string]string{
		".parachute/skills/review.md": "---\nname: review\ndescription: How to review.\n---\nRead it twice.\n",
		".parachute/skills/hours.md":  "---\ndescription: When we are open.\ntrust_level: sandboxed\n---\nAlways.",
		".parachute/skills/root.md":   "---\ndescription: For the owner.\ntrust_level: full\n---\nx",
		".parachute/skills/bad.md":    "---\nname: bad\n---\nno description",
		".parachute/skills/empty.md":  "---\ndescription: says nothing\n---\n",
		".parachute/skills/null.md":   "---\ndescription: x\ntrust_level:\n---\nx",
		".parachute/skills/more.md":   "---\ndescription: x\nallowed: x\n---\nx",
	})
	for trust, want := range map[core.Trust]string{core.Stranger: "", core.Sandboxed: "hours", core.Vault: "hours review", core.Full: "hours review root"} {
		var got []string
		for _, s := range a.Skills(trust) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %v", trust, got)
		}
	}
	if f := a.Faults(); len(f) != 4 {
		t.Error(f)
	}
}

func TestAWorkspaceIsACeilingAndWhatCannotBeReadClosesIt(t *testing.T) {
	_, a := open(t, map[string]string{
		".parachute/agents/cook.md":                 "---\nname: cook\nmodel: local/a\n---\nCook.",
		".parachute/agents/small.md":                "---\nname: small\ntrust_level: sandboxed\n---\nSmall.",
		".parachute/workspaces/kitchen/config.yaml": "name: Kitchen\ndescription: All on food\ntrust_level: vault\nworking_directory: Food\nmodel: local/b\nagent: cook\n",
		".parachute/workspaces/plain/config.yaml":   "name: Plain\n",
		".parachute/workspaces/bad/config.yaml":     "name: x\ntrust_level: ful\n",
		".parachute/workspaces/null/config.yaml":    "trust_level:\n",
		".parachute/workspaces/up/config.yaml":      "working_directory: ../x\n",
		".parachute/workspaces/more/config.yaml":    "trust: vault\n",
		".parachute/workspaces/none/readme.txt":     "x",
	})
	for _, c := range []struct {
		agent, space      string
		who, model, where string
		trust             core.Trust
		warnings          int
	}{
		{"", "", "vault-agent", "", "", core.Full, 0},
		{"", "kitchen", "cook", "local/b", "Food", core.Vault, 0},
		{"vault-agent", "kitchen", "cook", "local/b", "Food", core.Vault, 0},
		{"small", "kitchen", "small", "local/b", "Food", core.Sandboxed, 0},
		{"cook", "plain", "cook", "local/a", "", core.Full, 0},
		{"", "bad", "vault-agent", "", "", core.Sandboxed, 1},
		{"", "null", "vault-agent", "", "", core.Sandboxed, 1},
		{"", "up", "vault-agent", "", "", core.Sandboxed, 1},
		{"", "more", "vault-agent", "", "", core.Sandboxed, 1},
		{"", "none", "vault-agent", "", "", core.Sandboxed, 1},
		{"", "gone", "vault-agent", "", "", core.Sandboxed, 1},
		{"", "../../x", "vault-agent", "", "", core.Sandboxed, 1},
	} {
		r := a.Role(c.agent, c.space)
		if r.Agent.Name != c.who || r.Model != c.model || r.WorkingDirectory != c.where || r.Trust != c.trust || len(r.Warnings) != c.warnings {
			t.Errorf("%q in %q: %+v", c.agent, c.space, r)
		}
	}
	if r := a.Role("", "bad"); !strings.Contains(r.Warnings[0].Message, ".parachute/workspaces/bad/config.yaml:2") {
		t.Error(r.Warnings)
	}
	if got := a.Workspaces(); len(got) != 2 || got[0].Name != "Kitchen" || got[0].Description != "All on food" {
		t.Errorf("%+v", got)
	}
}

func TestLinksAreNoDefinitions(t *testing.T) {
	v, _ := open(t, map[string]string{"private.md": "---\nname: x\n---\nvery secret", ".parachute/agents/good.md": "---\nname: good\n---\nhello", "Elsewhere/s.md": "---\ndescription: d\n---\nsecret"})
	for link, to := range map[string]string{
		".parachute/agents/link.md": "../../private.md", ".parachute/agents/out.md": filepath.Join(t.TempDir(), "x.md"), ".parachute/skills": "../Elsewhere",
	} {
		if err := os.Symlink(to, filepath.Join(v.Path(), link)); err != nil {
			t.Fatal(err)
		}
	}
	a := agent.New(v, agent.Options{})
	if got := a.Names(); !cmp.Equal(got, []string{"vault-agent", "good"}) || len(a.Skills(core.Full)) != 0 || len(a.Faults()) != 3 {
		t.Errorf("%v, %v, %v", got, a.Skills(core.Full), a.Faults())
	}
}

func TestTheNumberOfDefinitionsIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 105 {
		files[fmt.Sprintf(".parachute/agents/a%03d.md", i)] = "---\ndescription: x\n---\nx"
		files[fmt.Sprintf(".parachute/skills/s%03d.md", i)] = "---\ndescription: x\n---\nx"
		files[fmt.Sprintf(".parachute/workspaces/w%03d/config.yaml", i)] = "name: x\n"
	}
	_, a := open(t, files)
	if len(a.List()) != 101 || len(a.Skills(core.Full)) != 100 || len(a.Workspaces()) != 100 || len(a.Faults()) != 3 {
		t.Errorf("%d agents, %d skills, %d workspaces, %v", len(a.List()), len(a.Skills(core.Full)), len(a.Workspaces()), a.Faults())
	}
	if r := a.Role("", "w104"); r.Trust != core.Sandboxed {
		t.Errorf("a workspace that was not read is open: %+v", r)
	}
}

// firstGeneration is an agent's file as the first generation has it.
const firstGeneration = `---
name: Agent Name
description: What this agent does
model: claude-sonnet-4-20250514
version: 2
tags: [home, garden]
system_prompt: |
  You are a helpful assistant...
color: green
---

# Agent Name

Additional context for the agent.
`

func TestAFileOfTheFirstGenerationIsUsedWithWarnings(t *testing.T) {
	const file = ".parachute/agents/helper.md"
	_, a := open(t, map[string]string{file: firstGeneration})
	if f := a.Faults(); len(f) != 0 {
		t.Fatal(f)
	}
	who, warnings := a.Choose("Agent Name")
	if len(warnings) != 0 || who.Model != "anthropic/claude-sonnet-4-20250514" || !strings.HasPrefix(who.Prompt, "You are a helpful assistant...\n\n# Agent Name") || who.Description != "What this agent does" {
		t.Errorf("%+v, %v", who, warnings)
	}
	var got []string
	for _, n := range a.Notes() {
		got = append(got, n.String())
	}
	want := []string{
		file + ":4: the model has no provider; it is read as anthropic/NAME",
		file + `:5: unknown field "version" is ignored; docs/agents.md lists those that there are`,
		file + `:6: unknown field "tags" is ignored; docs/agents.md lists those that there are`,
		file + `:9: unknown field "color" is ignored; docs/agents.md lists those that there are`,
	}
	if !cmp.Equal(got, want) {
		t.Errorf("warnings %q", got)
	}
	if d := a.Try(file, firstGeneration); d.Fault != nil || len(d.Notes) != 4 {
		t.Errorf("the editor: %+v", d)
	}
}

func TestUnknownFieldsBelowAgentAreIgnoredWithTheirLine(t *testing.T) {
	_, a := open(t, map[string]string{".parachute/agents/x.md": "---\ntask: y\nagent:\n  name: x\n  icon: leaf\n  tools: [Read]\n---\nhello"})
	who, _ := a.Choose("x")
	if n := a.Notes(); len(a.Faults()) != 0 || len(n) != 1 || n[0].Line != 5 || !cmp.Equal(who.Tools, []string{"Read"}) {
		t.Errorf("%+v, %v, %v", who, n, a.Faults())
	}
}

func TestAModelWithoutAProviderGetsOne(t *testing.T) {
	for model, want := range map[string]string{
		"claude-opus-4-1": "anthropic/claude-opus-4-1", "gpt-4o": "openai/gpt-4o", "o3-mini": "openai/o3-mini", "o1": "openai/o1", "chatgpt-4o-latest": "openai/chatgpt-4o-latest",
		"llama3": "llama3", "sonnet": "sonnet", "orca": "orca",
		"anthropic/claude-x": "", "openai/o3": "", "local/quote": "", "claudecli/opus": "",
	} {
		_, a := open(t, map[string]string{".parachute/agents/x.md": "---\nmodel: " + model + "\n---\nhello"})
		who, _ := a.Choose("x")
		notes := a.Notes()
		if want == "" {
			if who.Model != model || len(notes) != 0 {
				t.Errorf("%s: %s, %v", model, who.Model, notes)
			}
			continue
		}
		if who.Model != want || len(notes) != 1 || notes[0].Line != 2 || !strings.HasPrefix(notes[0].Text, "the model has no provider; ") {
			t.Errorf("%s: %s, %v", model, who.Model, notes)
		}
	}
}

// A field that was meant to take something away is not ignored.
func TestAFieldThatMayLimitAnAgentIsAFault(t *testing.T) {
	for _, field := range []string{"tool", "tolls", "Tools", "disallowedTools", "allowed-tools", "permissionMode", "permision", "trust", "trustLevel", "trust_levl", "write_permission", "readOnly", "mcp_servers", "mcpServer",
		"systemPrompt", "nmae", "modle", "contxt", "denied", "deny", "sandboxed", "exclude_paths", "maxTurns", "level", "disable", "approval",
		"ask", "askFirst", "confirm", "scope", "folder", "network", "blocked", "only", "hooks"} {
		_, a := open(t, map[string]string{".parachute/agents/x.md": "---\ndescription: y\n" + field + ": z\n---\nhello"})
		if f := a.Faults(); len(f) != 1 || f[0].Line != 3 || !strings.Contains(f[0].Text, "unknown field") || len(a.Notes()) != 0 {
			t.Errorf("%s: faults %v, warnings %v", field, f, a.Notes())
		}
	}
}

func FuzzAgentFile(f *testing.F) {
	for _, s := range []string{"---\nname: x\n---\nbody", "---\nagent:\n  tools: [a]\n---", "---\n- a\n---", "---\ncontext: {include: ['**']}\n---\n", "---\n? a\n: b\n---\n", "---\n? a\n\n b\n---:", "---\n<<: {a: b}\n---\n", "---\n\"agent\": 1\n...\n"} {
		f.Add(s)
	}
	f.Add("\r\r0")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 2 // a \r alone ends a line of YAML, too
		_, a := open(t, map[string]string{".parachute/agents/f.md": text, ".parachute/skills/f.md": text, ".parachute/workspaces/f/config.yaml": text})
		for _, fault := range a.Faults() {
			if fault.Text == "" || fault.Line < 0 || fault.Line > lines || strings.ContainsAny(fault.String(), "\n") {
				t.Errorf("%q: %+v", text, fault)
			}
		}
		for _, note := range a.Notes() {
			if note.Text == "" || note.Line < 0 || note.Line > lines || strings.ContainsAny(note.String(), "\n") {
				t.Errorf("%q: %+v", text, note)
			}
		}
		if len(a.Faults()) == 0 && len(a.List()) != 2 {
			t.Errorf("%q is neither an agent nor a fault", text)
		}
	})
}

// The agents that come with the program are whole, and leave themselves only
// tools that there are.
func TestTheAgentsToBeginWithAreWhole(t *testing.T) {
	files, err := filepath.Glob("../../configs/agents/*.md")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	into := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		into[".parachute/agents/"+filepath.Base(file)] = string(text)
	}
	_, a := open(t, into)
	if f := a.Faults(); len(f) != 0 {
		t.Error(f)
	}
	if got := a.Names(); !cmp.Equal(got, []string{"vault-agent", "note-keeper", "researcher", "reviewer"}) {
		t.Error(got)
	}
	tools := strings.Fields("Read Write Edit Glob Grep Search Bash WebFetch WebSearch Task Skill AskUserQuestion")
	for _, x := range a.List()[1:] {
		if x.Description == "" || len(x.Prompt) < 200 || len(x.Tools) == 0 || x.Permissions == nil || x.Permissions.Bash.All || x.Model != "" {
			t.Errorf("%+v", x)
		}
		for _, name := range x.Tools {
			if !slices.Contains(tools, name) {
				t.Errorf("%s: there is no tool %s", x.Name, name)
			}
		}
	}
}
