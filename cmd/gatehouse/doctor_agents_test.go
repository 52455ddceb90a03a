package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorTellsBrokenFilesOfAgents(t *testing.T) {
	p := healthyPatient(t)
	if found, ok := examine(t, p, "agents"); !ok || len(found) != 1 || found[0].State != doctorOK || !strings.Contains(found[0].Text, "1 agent, 0 skills, 0 workspaces") {
		t.Errorf("a vault without agents: %+v", found)
	}
	if left, err := os.ReadDir(p.Config.VaultPath); err != nil || len(left) != 0 {
		t.Errorf("doctor left %v, %v", left, err)
	}
	dir := filepath.Join(p.Config.VaultPath, ".parachute", "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"good.md": "---\n---\nhello", "bad.md": "---\nname: x\ncolour: red\n---\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Config.DefaultAgent = "gone"
	found, ok := examine(t, p, "agents")
	if !ok || len(found) != 2 || found[0].State != doctorWarn || found[1].State != doctorWarn || found[0].Fix == "" || found[1].Fix == "" {
		t.Fatalf("%v %+v", ok, found)
	}
	if !strings.Contains(found[0].Text, ".parachute/agents/bad.md:3: ") || !strings.Contains(found[1].Text, "gone") {
		t.Errorf("%+v", found)
	}
}

func TestAgentsAreListedAndAddedByTheCommandLine(t *testing.T) {
	h := newHome(t, nil)
	code, out, errs := h.run("agents", "add", "reviewer")
	if code != 0 || !strings.Contains(out, "/agent reviewer") {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if code, _, errs = h.run("agents", "add", "reviewer"); code != 1 || !strings.Contains(errs, "is there already") {
		t.Errorf("twice: %d %q", code, errs)
	}
	if code, _, errs = h.run("agents", "add", "../x"); code != 1 || !strings.Contains(errs, "note-keeper, researcher, reviewer") {
		t.Errorf("an unknown one: %d %q", code, errs)
	}
	bad := filepath.Join(h.vault(), ".parachute", "agents", "bad.md")
	if err := os.WriteFile(bad, []byte("---\nx: 1\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.env["GATEHOUSE_DEFAULT_AGENT"] = "reviewer"
	code, out, errs = h.run("agents", "list")
	for _, want := range []string{"vault-agent", "Reads a text", "answers where nobody is named", ".parachute/agents/bad.md:2: ", "add': note-keeper, researcher, reviewer"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list lacks %q: %d %s %s", want, code, out, errs)
		}
	}
}

// An agent or a workspace whose model is not configured is answered by another
// one: whoever looks at the agents is told.
func TestAnAgentWhoseModelIsNotConfiguredIsToldOf(t *testing.T) {
	files := map[string]string{
		".parachute/agents/lost.md":              "---\nmodel: openai/gone\n---\nYou are lost.",
		".parachute/agents/fine.md":              "---\nmodel: local/quote\n---\nYou are fine.",
		".parachute/workspaces/home/config.yaml": "name: Home\nmodel: mistral/x\n",
	}
	put := func(vault string) {
		for name, text := range files {
			path := filepath.Join(vault, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := healthyPatient(t)
	p.Config.Model = "local/quote"
	put(p.Config.VaultPath)
	found, _ := examine(t, p, "agents")
	if len(found) != 2 || found[0].State != doctorWarn || !strings.HasPrefix(found[0].Text, `agent lost: model "openai/gone" is not configured here`) ||
		!strings.HasPrefix(found[1].Text, `workspace home: model "mistral/x"`) || !strings.Contains(found[0].Fix, "GATEHOUSE_MODEL") {
		t.Errorf("doctor: %+v", found)
	}
	h := newHome(t, nil)
	h.env["GATEHOUSE_MODEL"] = "local/quote"
	h.run("agents", "add", "reviewer") // makes the vault
	put(h.vault())
	if code, out, _ := h.run("agents", "list"); code != 0 || !strings.Contains(out, `no model   agent lost: model "openai/gone" is not configured here; there is local/quote; local/quote answers instead`) || strings.Contains(out, "agent fine:") {
		t.Errorf("the list: %d %s", code, out)
	}
	w := newWorld(t, nil)
	w.puts(files)
	m := w.replies(w.boss(), "/agent")
	if !strings.Contains(m.Text, "(its model openai/gone is not configured here: local/quote answers)") || strings.Count(m.Text, "is not configured") != 1 {
		t.Errorf("/agent: %q", m.Text)
	}
}
