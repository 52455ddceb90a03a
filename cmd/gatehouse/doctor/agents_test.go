package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorReportsBrokenFilesOfAgents(t *testing.T) {
	p := healthySubject(t)
	if found, ok := examine(t, p, "agents"); !ok || len(found) != 1 || found[0].State != OK || !strings.Contains(found[0].Text, "1 agent, 0 skills, 0 workspaces") {
		t.Errorf("a vault without agents: %+v", found)
	}
	if left, err := os.ReadDir(p.Config.VaultPath); err != nil || len(left) != 0 {
		t.Errorf("doctor left %v, %v", left, err)
	}
	dir := filepath.Join(p.Config.VaultPath, ".parachute", "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"good.md": "---\n---\nhello", "bad.md": "---\nname: x\ntool: red\n---\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Config.DefaultAgent = "gone"
	found, ok := examine(t, p, "agents")
	if !ok || len(found) != 2 || found[0].State != Warn || found[1].State != Warn || found[0].Fix == "" || found[1].Fix == "" {
		t.Fatalf("%v %+v", ok, found)
	}
	if !strings.Contains(found[0].Text, ".parachute/agents/bad.md:3: ") || !strings.Contains(found[1].Text, "gone") {
		t.Errorf("%+v", found)
	}
}

func TestDoctorNamesWhatIsIgnoredInFilesOfAgents(t *testing.T) {
	p := healthySubject(t)
	dir := filepath.Join(p.Config.VaultPath, ".parachute", "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old.md"), []byte("---\nname: x\nmodel: claude-sonnet-4-20250514\ncolour: red\n---\nhello"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, ok := examine(t, p, "agents")
	text := ""
	for _, f := range found {
		if f.State != Warn || f.Fix == "" {
			t.Errorf("%+v", f)
		}
		text += f.Text + "\n"
	}
	if !ok || !strings.Contains(text, ".parachute/agents/old.md:4: unknown field") || !strings.Contains(text, ".parachute/agents/old.md:3: the model has no provider; it is read as anthropic/NAME") {
		t.Errorf("%v %s", ok, text)
	}
}
