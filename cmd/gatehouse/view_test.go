package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/commands"
	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/configs"
	"gatehouse/core/llm/llmtest"
	dbfile "gatehouse/core/store/snapshot"
)

// panel is a browser that is signed in to the gateway that p serves.
func (h *home) panel(p *proc) *browser {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	b := &browser{&world{t: h.t, cfg: &configs.Config{Addr: p.addr()}}, &http.Client{Jar: jar}}
	b.submit("/admin/login", b.page("/admin/login"), url.Values{"name": {"admin"}, "password": {cliPassword}})
	return b
}

// check is what doctor says, as lines "state name text fix", and its exit code.
func (h *home) check() (code int, lines []string) {
	h.t.Helper()
	code, out, errs := h.run("doctor", "--json")
	var r struct{ Checks []doctor.Finding }
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		h.t.Fatalf("%v: %q %q", err, out, errs)
	}
	for _, c := range r.Checks {
		lines = append(lines, string(c.State)+" "+c.Name+": "+c.Text+" | "+c.Fix)
	}
	return code, lines
}

func has(lines []string, parts ...string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				return false
			}
		}
		return true
	})
}

// What was set in the panel holds for doctor, agents list and explain, too:
// while a gateway serves, and on its files when none does; and each says where
// a value comes from.
func TestTheCommandLineKnowsWhatThePanelHasSet(t *testing.T) {
	sim := newSim(t)
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"fake-1", "fake-2"}})
	h := newHome(t, sim)
	h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_OPENAI_API_KEY"], h.env["GATEHOUSE_MODEL"] = model.URL(), modelKey, fakeModel
	for name, text := range map[string]string{"cook.md": "---\ndescription: Cooks.\n---\nYou cook.", "lost.md": "---\nmodel: openai/fake-2\n---\nYou are lost."} {
		path := filepath.Join(h.vault(), ".parachute", "agents", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tea := func() string {
		_, out, _ := h.run("explain", "--tool", "Read", "Public/tea.md", "--as", "guest")
		return out
	}
	serves := h.serve(nil)
	if _, lines := h.check(); has(lines, " panel: ") || has(lines, " settings: ") {
		t.Errorf("nothing was set: %q", lines)
	}
	if _, out, _ := h.run("agents", "list"); !strings.Contains(out, "vault-agent answers (DEFAULT_AGENT: the default)") || !strings.Contains(out, fakeModel+" (MODEL: from the environment)") ||
		!strings.Contains(out, "no model   agent lost") {
		t.Errorf("nothing was set: %s", out)
	}
	if out := tea(); !strings.Contains(out, "allow") || !strings.Contains(out, "Guests read Public/** (GUEST_READ: from the environment)") {
		t.Errorf("nothing was set: %s", out)
	}

	b := h.panel(serves)
	if body := b.set("models", url.Values{"MODEL": {"openai/fake-2"}, "DEFAULT_AGENT": {"cook"}, "BUDGET_DAY": {"$4"}}); !strings.Contains(body, "3 settings are changed") {
		t.Fatal(body)
	}
	b.set("access", url.Values{"GUEST_READ": {"Other/**"}})
	b.set("limits", url.Values{"RATE_LIMIT": {"3/1m"}})
	b.submit("/admin/settings/bots/telegram/policy", b.page("/admin/settings/bots"), url.Values{"dm_policy": {"open"}, "sure": {"yes"}, "dm_trust": {"sandboxed"}, "group_trust": {"vault"}})
	b.submit("/admin/settings/log", b.page("/admin/settings/variables"), url.Values{"level": {"warn"}})
	look := func(when string) {
		t.Helper()
		code, lines := h.check()
		for _, want := range [][]string{
			{"ok panel: MODEL is openai/fake-2 (from the environment: " + fakeModel + ")"},
			{"ok panel: DEFAULT_AGENT is cook (the default: nothing)"},
			{"ok panel: GUEST_READ is Other/** (from the environment: Public/**)"},
			{"ok panel: RATE_LIMIT is 3/1m (the default: 10/1m)"},
			{"ok panel: BUDGET_DAY is $4"},
			{"ok panel: LOG_LEVEL is warn (from the environment: debug)"},
			{"ok panel: the bot telegram has the policy open, with sandboxed in direct messages and vault in groups"},
			{"warn telegram: anyone who finds the bot", "set dm_policy on the panel's page Settings"},
			{"ok model: openai/fake-2 answers"},
		} {
			if code != exitClean || !has(lines, want...) {
				t.Errorf("%s: doctor (%d) lacks %q in %q", when, code, want, lines)
			}
		}
		if has(lines, " settings: ") {
			t.Errorf("%s: the settings are the same, and doctor says %q", when, lines)
		}
		_, out, _ := h.run("agents", "list")
		for _, want := range []string{"Cooks. (answers where no agent is named)", "cook answers (DEFAULT_AGENT: set in the panel)", "openai/fake-2 (MODEL: set in the panel)"} {
			if !strings.Contains(out, want) || strings.Contains(out, "no model   ") {
				t.Errorf("%s: agents list: %s", when, out)
			}
		}
		if _, out, _ := h.run("agents", "list", "--json"); !strings.Contains(out, `"source": "panel"`) || !strings.Contains(out, `"no_model": []`) {
			t.Errorf("%s: agents list --json: %s", when, out)
		}
		if out := tea(); !strings.Contains(out, "deny") || !strings.Contains(out, "Guests read Other/** (GUEST_READ: set in the panel)") {
			t.Errorf("%s: explain: %s", when, out)
		}
		if _, out, _ := h.run("explain", "--json", "--tool", "Read", "Other/x.md", "--as", "guest"); !strings.Contains(out, `"allow"`) || !strings.Contains(out, `"source": "panel"`) {
			t.Errorf("%s: explain --json: %s", when, out)
		}
	}
	look("while it serves")

	// Whoever runs a command with another environment than the gateway's is told
	// of it, and what holds there is what counts.
	was := h.env["GATEHOUSE_LIMIT_RUNS"]
	h.env["GATEHOUSE_LIMIT_RUNS"], h.env["GATEHOUSE_GUEST_READ"] = "7", "Public/**,More/**"
	if _, lines := h.check(); !has(lines, "warn settings: ", "GATEHOUSE_LIMIT_RUNS", "--env-file") || has(lines, "warn settings: ", "GUEST_READ") {
		t.Errorf("another environment: %q", lines)
	}
	h.env["GATEHOUSE_LIMIT_RUNS"], h.env["GATEHOUSE_GUEST_READ"] = was, "Public/**"

	_ = serves.cmd.Process.Signal(os.Interrupt)
	serves.end()
	look("on the files")

	// What was set and can't hold any more is told, and takes no other with it.
	delete(h.env, "GATEHOUSE_OPENAI_BASE_URL")
	delete(h.env, "GATEHOUSE_OPENAI_API_KEY")
	h.env["GATEHOUSE_MODEL"] = "local/quote"
	if _, lines := h.check(); !has(lines, "warn panel: a value set in the panel is invalid", "MODEL: ") || !has(lines, "ok panel: DEFAULT_AGENT is cook") {
		t.Errorf("without the provider: %q", lines)
	}
}

// A look at the database's file makes none and changes nothing, and a file that
// can't be read is said to be one.
func TestALookForWhatThePanelHasSetLeavesNothing(t *testing.T) {
	p := doctor.Subject{Config: configs.Default()}
	p.Config.VaultPath = t.TempDir()
	if s := commands.Settle(t.Context(), p.Config); s.Fault != nil || len(s.Changed()) > 0 {
		t.Errorf("without a database: %v %q", s.Fault, s.Changed())
	}
	if left, err := os.ReadDir(p.Config.VaultPath); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.MkdirAll(filepath.Dir(p.Config.DatabasePath()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Config.DatabasePath(), []byte("this is no database, whatever its name says"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Settled = commands.Settle(t.Context(), p.Config)
	var report strings.Builder
	doctor.Run(t.Context(), &report, p, true)
	if !strings.Contains(report.String(), "the panel's settings cannot be read") {
		t.Errorf("a file that is no database: %s", report.String())
	}
	if _, err := dbfile.Peek(context.Background(), p.Config.DatabasePath(), "setting:changes"); err == nil {
		t.Error("a file that is no database is read")
	}
}
