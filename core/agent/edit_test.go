package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/vault"
)

func TestAFileOfAgentsIsWrittenOnlyAsItWasSeenAndWhereItIsRead(t *testing.T) {
	dir := t.TempDir()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	a := agent.New(v, agent.Options{})
	const file, good = ".parachute/agents/notes.md", "---\ndescription: d\n---\nBe brief.\n"
	if text, version, err := a.Text(file); text != "" || version != "" || err != nil {
		t.Errorf("a file that is not there: %q %q %v", text, version, err)
	}
	if err := a.Save(file, "", good); err != nil {
		t.Fatal(err)
	}
	if x, _ := a.Choose("notes"); x.Prompt != "Be brief." {
		t.Errorf("after saving it answers with %q", x.Prompt)
	}
	if err := a.Save(file, "", good); core.KindOf(err) != core.Conflict {
		t.Errorf("making a file that is there: %v", err)
	}
	if err := a.Save(".parachute/agents/other.md", "", "---\nname: Notes\n---\n"); core.KindOf(err) != core.Invalid {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := a.Save(".parachute/agents/README.md", "", good); core.KindOf(err) != core.Invalid {
		t.Errorf("a README: %v", err)
	}
	// A folder that is a link is not followed, also inside the vault.
	if err := os.Mkdir(filepath.Join(dir, "Public"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../Public", filepath.Join(dir, ".parachute", "skills")); err != nil {
		t.Fatal(err)
	}
	if err := a.Save(".parachute/skills/weekly.md", "", good); core.KindOf(err) != core.Invalid {
		t.Errorf("through a link: %v", err)
	}
	if list, err := os.ReadDir(filepath.Join(dir, "Public")); err != nil || len(list) != 0 {
		t.Errorf("the linked folder holds %v, %v", list, err)
	}
}
