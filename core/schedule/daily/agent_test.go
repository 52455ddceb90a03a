package daily_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/vault"
)

func head(lines string) string { return "---\n" + lines + "\n---\nLook at {date}.\n" }

func TestParse_ReadsEveryFormOfSchedule(t *testing.T) {
	for _, c := range []struct {
		name, head, rule string
		enabled          bool
	}{
		{"no fields", "description: x", "3:00", true},
		{"a time", `schedule: "8:00"`, "8:00", true},
		{"a time without quotes", `schedule: 08:30`, "8:30", true},
		{"fields", "schedule: {enabled: true, time: \"21:15\"}", "21:15", true},
		{"disabled fields", "schedule:\n  enabled: false\n  time: \"21:15\"", "21:15", false},
		{"fields without a time", "schedule: {enabled: false}", "3:00", false},
		{"switched off", "schedule: \"8:00\"\nschedule_enabled: false", "8:00", false},
		{"cron", `schedule: "30 7 * * 1-5"`, "30 7 * * 1-5", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, fault := daily.Parse("x", head(c.head))
			if fault != nil {
				t.Fatal(fault)
			}
			if a.Rule.String() != c.rule || a.Enabled != c.enabled || a.Rule.Zone().String() != "UTC" {
				t.Errorf("read as %s in %s, enabled %v", a.Rule, a.Rule.Zone(), a.Enabled)
			}
		})
	}
}

func TestParse_FaultsNameTheirLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		says       string
	}{
		{"no such time", head("description: x\nschedule: \"25:99\""), 3, "hours are 0 to 23"},
		{"no such time in fields", head("schedule:\n  enabled: true\n  time: \"8:61\""), 4, "minutes 0 to 59"},
		{"no such zone", head("schedule: \"8:00\"\ntimezone: Mars/Olympus"), 3, "time zone"},
		{"an unknown field", head("displayName: x\nshedule: 8"), 3, "docs/schedule.md"},
		{"an unknown field of schedule", head("schedule:\n  at: \"8:00\""), 3, ""},
		{"an unknown tool", head("tools: [read_journal, launch_rocket]"), 2, "does not exist"},
		{"all tools", head("tools: all"), 2, "one by one"},
		{"output outside", head("output: ../{date}.md"), 2, "file of the vault"},
		{"output in a hidden directory", head("output: .claude/{date}.md"), 2, "hidden"},
		{"output without a date", head("output: Daily/x.md"), 2, "{date}"},
		{"output over the journal", head("output: Daily/{date}.md"), 2, "journal"},
		{"too much trust", head("trust_level: full"), 2, "vault or sandboxed"},
		{"no chat", head("deliver: telegram"), 2, "a bot and a chat"},
		{"no YAML", head("description: x\n: : :"), 3, "YAML"},
		{"no frontmatter", "Look at {date}.", 1, "frontmatter"},
		{"no prompt", "---\nschedule: \"8:00\"\n---\n", 0, "prompt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, fault := daily.Parse("x", c.text)
			if fault == nil {
				t.Fatal("the file is used")
			}
			if fault.Line != c.line || !strings.Contains(fault.Text, c.says) || fault.File != "Daily/.agents/x.md" {
				t.Errorf("the fault is %s", fault)
			}
		})
	}
}

func TestParse_MapsTheToolsOfTheOriginalSystem(t *testing.T) {
	a, fault := daily.Parse("x", head("tools: [read_journal, web_search, read_file, mcp__notes__list, Grep]"))
	if fault != nil {
		t.Fatal(fault)
	}
	if want := []string{"WriteOutput", "ReadJournal", "WebSearch", "Read", "mcp__notes__list", "Grep"}; !slices.Equal(a.Tools, want) {
		t.Errorf("the tools are %v, want %v", a.Tools, want)
	}
	if a, _ := daily.Parse("x", head("description: x")); !slices.Equal(a.Tools, daily.Own) {
		t.Errorf("without the field they are %v", a.Tools)
	}
}

func TestPromptOf_FillsIn(t *testing.T) {
	a, _ := daily.Parse("x", "---\ndescription: x\n---\n{date} {yesterday} {user_name} {user_context} {other}")
	if got := a.PromptOf("2026-03-01", "Ada", "{date}"); got != "2026-03-01 2026-02-28 Ada {date} {other}" {
		t.Errorf("the prompt is %q", got)
	}
}

func TestCheckName_RefusesWhatLeadsElsewhere(t *testing.T) {
	for _, name := range []string{"", "..", "../x", "a/b", ".hidden", "A", "agents", "activity", "assets", "chat-log", "x\x00", strings.Repeat("a", 49)} {
		if daily.CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

func open(t *testing.T) (*daily.Files, string) {
	t.Helper()
	dir := t.TempDir()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	if err := os.MkdirAll(filepath.Join(dir, "Daily/.agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	return daily.NewFiles(v), filepath.Join(dir, "Daily/.agents")
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRead_ABrokenFileIsAFaultAndTheOthersAreUsed(t *testing.T) {
	files, dir := open(t)
	put(t, dir, "good.md", head("schedule: \"8:00\""))
	put(t, dir, "bad.md", head("schedule: \"25:99\""))
	put(t, dir, "agents.md", head("schedule: \"8:00\""))
	put(t, dir, "README.md", "about")
	put(t, dir, "secret", "---\n---\nx")
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	s, err := files.Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Agents) != 1 || s.Agents[0].Name != "good" {
		t.Errorf("the agents are %v", s.Agents)
	}
	if f, ok := s.Fault("bad"); len(s.Faults) != 3 || !ok || f.Line != 2 {
		t.Errorf("the faults are %v", s.Faults)
	}
}

// Two agents that write one file would lose the text of one of them.
func TestRead_AnAgentWithTheOutputOfAnotherIsAFault(t *testing.T) {
	files, dir := open(t)
	put(t, dir, "a.md", head("schedule: \"8:00\"\noutput: Daily/report/{date}.md"))
	put(t, dir, "b.md", head("schedule: \"9:00\"\noutput: daily/Report/{date}.md"))
	put(t, dir, "c.md", head("output: Daily/{name}/{date}.md"))
	put(t, dir, "d.md", head("output: Notes/d-{date}.md"))
	put(t, dir, "report.md", head("schedule: \"8:00\""))
	s, err := files.Read()
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, a := range s.Agents {
		used = append(used, a.Name)
	}
	if got := strings.Join(used, " "); got != "a c d" {
		t.Errorf("used are %s, want a c d", got)
	}
	for name, line := range map[string]int{"b": 3, "report": 1} {
		if f, ok := s.Fault(name); !ok || f.Line != line || !strings.Contains(f.Text, "output is that of a") {
			t.Errorf("the fault of %s is %v, want one in line %d", name, f, line)
		}
	}
}

func TestRead_WithoutADirectoryThereAreNoAgents(t *testing.T) {
	files, dir := open(t)
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	if s, err := files.Read(); err != nil || len(s.Agents)+len(s.Faults) > 0 {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestEnable_ChangesOneLine(t *testing.T) {
	files, dir := open(t)
	for _, c := range []struct{ name, was, off string }{
		{"set", "---\nschedule: \"8:00\" # early\nschedule_enabled: true\n---\nBody\nschedule_enabled: true\n", "---\nschedule: \"8:00\" # early\nschedule_enabled: false\n---\nBody\nschedule_enabled: true\n"},
		{"unset", "---\r\ndescription: x\r\n---\r\nBody\r\n", "---\r\ndescription: x\r\nschedule_enabled: false\r\n---\r\nBody\r\n"},
	} {
		put(t, dir, c.name+".md", c.was)
		if err := files.Enable(c.name, false); err != nil {
			t.Fatal(err)
		}
		if got, _ := files.Text(c.name); got != c.off {
			t.Errorf("%s: the file is %q", c.name, got)
		}
		if err := files.Enable(c.name, true); err != nil {
			t.Fatal(err)
		}
		if s, _ := files.Read(); len(s.Faults) > 0 {
			t.Errorf("%s: %v", c.name, s.Faults)
		}
	}
	put(t, dir, "bad.md", head("schedule: \"25:99\""))
	if err := files.Enable("bad", true); core.KindOf(err) != core.Conflict {
		t.Errorf("a broken file is changed: %v", err)
	}
}

func TestSamplesAreUsable(t *testing.T) {
	files, _ := open(t)
	for _, name := range daily.Samples() {
		if err := files.AddSample(name); err != nil {
			t.Fatal(err)
		}
		if err := files.AddSample(name); core.KindOf(err) != core.Conflict {
			t.Errorf("a file is replaced by the sample %s: %v", name, err)
		}
	}
	s, err := files.Read()
	if err != nil || len(s.Faults) > 0 || len(s.Agents) != 2 {
		t.Fatalf("got %v, %v", s, err)
	}
	for _, want := range []string{"content-scout", "reflection"} {
		if a, ok := s.Agent(want); !ok || !a.Enabled || a.Description == "" {
			t.Errorf("the sample %s is %v", want, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head("schedule: \"8:00\"\ntools: [read_journal]\noutput: a/{date}.md"))
	f.Add("---\noutput: 0{date}..md\n---\n0")
	f.Fuzz(func(t *testing.T, text string) {
		a, fault := daily.Parse("x", text)
		if fault == nil && (a.Prompt == "" || a.Trust > core.Vault || a.OutputOf("2026-01-28") != "" && !filepath.IsLocal(a.OutputOf("2026-01-28"))) {
			t.Errorf("%q is used", text)
		}
	})
}

func TestRead_Has64AgentsAndFilesOfUpTo64KiB(t *testing.T) {
	files, dir := open(t)
	small := head("schedule: \"8:00\"")
	put(t, dir, "a-large.md", small+strings.Repeat("x", 64<<10-len(small)))
	put(t, dir, "a-larger.md", small+strings.Repeat("x", 64<<10-len(small)+1))
	for i := range 70 {
		put(t, dir, fmt.Sprintf("n%02d.md", i), small)
	}
	s, err := files.Read()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Agent("a-large"); !ok || len(s.Agents) != 63 {
		t.Errorf("%d agents are read of 64 files, a large one: %v", len(s.Agents), ok)
	}
	larger, ok := s.Fault("a-larger")
	if !ok || !strings.Contains(larger.Text, "64 KiB") || len(s.Faults) != 2 || !strings.Contains(s.Faults[1].Text, "more than 64 files") {
		t.Errorf("the faults are %v", s.Faults)
	}
}
