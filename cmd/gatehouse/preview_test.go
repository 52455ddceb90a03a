package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/orchestrator"
)

// What the panel says of somebody before they are let in is what they get: the
// tools that the model is told of in their turn, and the files that are open.
func TestThePairingPreviewReportsWhatTheyThenGet(t *testing.T) {
	t.Parallel()
	w, model := claudeWorld(t, nil)
	w.boss()
	look := w.app.newPreviews()
	low, err := look.Preview(t.Context(), core.Sandboxed)
	if err != nil {
		t.Fatal(err)
	}
	high, err := look.Preview(t.Context(), core.Vault)
	if err != nil {
		t.Fatal(err)
	}
	if low.Files == 0 || low.Files >= high.Files || high.AtLeast {
		t.Errorf("sandboxed reads %d files, vault %d", low.Files, high.Files)
	}
	for _, name := range low.Examples {
		if !strings.HasPrefix(name, "Public/") {
			t.Errorf("sandboxed would read %s", name)
		}
	}
	if !slices.Contains(low.Unasked, "write in a folder of their own") || slices.Contains(low.Asks, "change notes of yours") || !slices.Contains(high.Asks, "change notes of yours") {
		t.Errorf("sandboxed: unasked %q, asks %q; vault: unasked %q, asks %q", low.Unasked, low.Asks, high.Unasked, high.Asks)
	}
	model.Script(anthropictest.Say("Hello."), anthropictest.Say("Hello again."))
	w.guest("Gus")
	told := slices.DeleteFunc(tells(model), func(name string) bool { return name == orchestrator.TaskName || name == orchestrator.AskName })
	slices.Sort(told)
	slices.Sort(low.Tools)
	if len(told) == 0 || !slices.Equal(told, low.Tools) {
		t.Errorf("foreseen %q, offered %q", low.Tools, told)
	}
}

// GUEST_MODEL answers sandboxed users alone: the preview names for each level the model
// that answers it, and is billed.
func TestThePreviewNamesTheModelOfItsLevel(t *testing.T) {
	t.Parallel()
	for _, guest := range []string{"local/quote", ""} {
		w, _ := newModelWorld(t, func(c *configs.Config) { c.GuestModel, c.ModelFallbacks = guest, values.List{"openai/fake-2"} })
		for own, others := range map[string]string{
			"":                 fakeModel,
			"openai/fake-2":    "openai/fake-2",
			"openai/nope":      fakeModel,
			"claudecli/sonnet": fakeModel, // answers the owner alone
		} {
			w.puts(map[string]string{".parachute/agents/vault-agent.md": "---\ndescription: Answers.\nmodel: " + own + "\n---\nYou answer.\n"})
			look := w.app.newPreviews()
			for level, want := range map[core.Trust]string{core.Sandboxed: cmp.Or(guest, others), core.Vault: others} {
				if p, err := look.Preview(t.Context(), level); err != nil || p.Model != want {
					t.Errorf("GUEST_MODEL %q, the agent's model %q: %q would answer at %s, %v; want %s", guest, own, p.Model, level, err, want)
				}
			}
		}
	}
}
