package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core/llm/llmtest"
)

// openaiExample is the program of docs/openai.md in a language.
func openaiExample(t *testing.T, fence string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, "docs", "openai.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(b), "\n```"+fence+"\n")
	code, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("no example in %s", fence)
	}
	return code + "\n"
}

// TestTheExamplesOfTheOpenAIPageWork runs each as it stands on the page: that of
// curl everywhere, those of OpenAI's clients where .ci/clients has fetched them.
func TestTheExamplesOfTheOpenAIPageWork(t *testing.T) {
	t.Parallel()
	node, program := os.Getenv("GATEHOUSE_TEST_OPENAI_NODE"), os.Getenv("GATEHOUSE_TEST_OPENAI_EXAMPLE")
	b, err := os.ReadFile(filepath.Join(repository, "web", "openai", "clienttest", "example", "main.go"))
	if err != nil || string(b) != openaiExample(t, "go") {
		t.Errorf("the program in web/openai/clienttest/example is not that of the page: %v", err)
	}
	for name, c := range map[string]struct {
		dir, file, fence string
		command          []string
	}{
		"curl": {t.TempDir(), "example.sh", "sh", []string{"bash", "-eu", "example.sh"}},
		"Node": {node, "example.mjs", "javascript", []string{"node", "example.mjs"}},
		"Go":   {program, "", "", []string{program}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.dir == "" {
				t.Skip("SKIPPED: this client is not here: make test-clients fetches it")
			}
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(c.dir, c.file), []byte(openaiExample(t, c.fence)), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				c.dir = t.TempDir()
			}
			w, model := newModelWorld(t, nil)
			model.Script(llmtest.Say("Green tea."), llmtest.Say("Black", " tea."))
			cmd := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
			cmd.Dir = c.dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=127.0.0.1", "GATEHOUSE_URL=http://" + w.cfg.Addr, "GATEHOUSE_KEY=" + w.key}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := "Green tea.\nBlack tea."
			if name == "curl" {
				want = `"text":"Black tea."`
			}
			if !strings.Contains(string(out), want) {
				t.Errorf("%s", out)
			}
			if sent := sentTo(t, model, 1); !strings.Contains(sent, "What do I have on tea?") || !strings.Contains(sent, "And on black tea?") {
				t.Errorf("the conversation: %s", sent)
			}
		})
	}
}
