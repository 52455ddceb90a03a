package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core/schedule/daily"
	"gatehouse/core/vault"
)

func TestAgentsAreListedAndAddedByTheCommandLine(t *testing.T) {
	h := newHome(t, nil)
	there := h.vault()
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "nowhere")
	if code, _, errs := h.run("agents", "list"); code != 1 || !strings.Contains(errs, "GATEHOUSE_VAULT_PATH names its vault") {
		t.Errorf("without a vault: %d %q", code, errs)
	}
	h.env["GATEHOUSE_VAULT_PATH"] = there
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
	for _, want := range []string{"vault-agent", "Reads a text", "answers where no agent is named", ".parachute/agents/bad.md:2: ", "add': note-keeper, researcher, reviewer"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list lacks %q: %d %s %s", want, code, out, errs)
		}
	}
}

// An agent or a workspace whose model is not configured is answered by another
// one: whoever looks at the agents is told.
func TestAnAgentWhoseModelIsNotConfiguredIsReported(t *testing.T) {
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
	h := newHome(t, nil)
	h.env["GATEHOUSE_MODEL"] = "local/quote"
	h.run("agents", "add", "reviewer") // makes the vault
	put(h.vault())
	if code, out, _ := h.run("agents", "list"); code != 0 || !strings.Contains(out, `no model   agent lost: model "openai/gone" is not configured here; there is local/quote; local/quote answers instead`) || strings.Contains(out, "agent fine:") {
		t.Errorf("the list: %d %s", code, out)
	}
	if _, lines := h.check(); !has(lines, `warn agents: agent lost: model "openai/gone" is not configured here`, "GATEHOUSE_MODEL") || !has(lines, `warn agents: workspace home: model "mistral/x"`) {
		t.Errorf("doctor: %q", lines)
	}
	w := newWorld(t, nil)
	w.puts(files)
	m := w.replies(w.boss(), "/agent")
	if !strings.Contains(m.Text, "(its model openai/gone is not configured here: local/quote answers)") || strings.Count(m.Text, "is not configured") != 1 {
		t.Errorf("/agent: %q", m.Text)
	}
}

// The samples of daily agents are listed, and copied as the panel copies them.
func TestSamplesOfDailyAgentsAreListedAndAdded(t *testing.T) {
	h := newHome(t, nil)
	code, out, errs := h.run("agents", "samples")
	if code != 0 || !strings.Contains(out, "reflection") || !strings.Contains(out, "content-scout") || strings.Contains(out, "already") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	code, out, errs = h.run("agents", "samples", "--add", "reflection")
	if code != 0 || !strings.Contains(out, "Daily/.agents/reflection.md was added") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	v, err := vault.Open(h.vault())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	a, fault := daily.NewFiles(v).Read()
	if _, ok := a.Agent("reflection"); !ok || fault != nil {
		t.Errorf("%+v, %v", a, fault)
	}
	if code, _, errs = h.run("agents", "samples", "--add", "reflection"); code != 1 || !strings.Contains(errs, "there is a daily agent reflection already") {
		t.Errorf("a second time: %d %s", code, errs)
	}
	if code, _, errs = h.run("agents", "samples", "--add", "../x"); code != 1 || !strings.Contains(errs, "there is no sample") || !strings.Contains(errs, "reflection") {
		t.Errorf("another name: %d %s", code, errs)
	}
	if code, out, _ = h.run("agents", "samples", "--json"); code != 0 || strings.Count(out, `"added": true`) != 1 || !strings.Contains(out, `"path": "Daily/.agents/reflection.md"`) {
		t.Errorf("as JSON: %d %s", code, out)
	}
}
