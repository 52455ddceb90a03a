package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

var pairingCode = regexp.MustCompile(`[2-9A-HJ-NP-Z]{8}`)

// atFirst is a gateway that knows Ada, who has talked with its bot; it has been stopped.
func atFirst(t *testing.T) (h *home, sim *telegramtest.Server, model *llmtest.Server, ada *telegramtest.User) {
	t.Helper()
	sim, model = newSim(t), llmtest.New(t, llmtest.Options{})
	h = newHome(t, sim)
	h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = model.URL(), fakeModel
	p := h.serve(nil)
	ada = sim.NewUser("Ada")
	ada.Send("My tea is Sencha.")
	code := pairingCode.FindString(hear(t, sim, ada.DM(), 0, "Your code is").Text)
	model.Script(llmtest.Say("Noted."))
	if exit, _, errs := h.run("pairing", "approve", code); exit != exitClean {
		t.Fatal(code, errs)
	}
	hear(t, sim, ada.DM(), 0, "Noted.")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.end()
	return h, sim, model, ada
}

// other is another gateway, with an empty vault, for the same model and no bot.
func (h *home) other() *home {
	to := newHome(h.t, nil)
	to.env["GATEHOUSE_OPENAI_BASE_URL"], to.env["GATEHOUSE_MODEL"] = h.env["GATEHOUSE_OPENAI_BASE_URL"], fakeModel
	return to
}

// gives moves the bot's token from one gateway's settings to the other's; both serve then.
func (h *home) gives(to *home, while func()) {
	to.env["GATEHOUSE_TELEGRAM_TOKEN"], to.env["GATEHOUSE_TELEGRAM_API_URL"] = h.env["GATEHOUSE_TELEGRAM_TOKEN"], h.env["GATEHOUSE_TELEGRAM_API_URL"]
	delete(h.env, "GATEHOUSE_TELEGRAM_TOKEN")
	h.serve(nil)
	while() // no gateway has the bot
	to.serve(nil)
}

// The first way of docs/scale.md#move-a-bot-to-another-gateway.
func TestABotThatMovesWithABackupKnowsItsPeopleAndLosesNoMessage(t *testing.T) {
	t.Parallel()
	h, sim, model, ada := atFirst(t)
	to := h.other()
	if err := os.RemoveAll(to.vault()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.dir, "all.tar.gz")
	if code, _, errs := h.run("backup", file); code != exitClean {
		t.Fatal(errs)
	}
	if code, _, errs := to.run("restore", file); code != exitClean {
		t.Fatal(errs)
	}
	key, err := os.ReadFile(filepath.Join(h.vault()+"-keys", "content.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(to.vault()+"-keys", 0o700), os.WriteFile(filepath.Join(to.vault()+"-keys", "content.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	model.Script(llmtest.Say("Sencha, you said."))
	h.gives(to, func() { ada.Send("Which tea is mine?") })
	hear(t, sim, ada.DM(), 0, "Sencha, you said.")
	asked := model.Requests()
	if last := string(asked[len(asked)-1].Body); !strings.Contains(last, "My tea is Sencha.") {
		t.Errorf("the model is not told what was said before: %s", last)
	}
	if got := strings.Join(said(sim, ada.DM()), " "); !strings.HasSuffix(got, "Noted. Sencha, you said.") || strings.Count(got, "Your code is") != 1 {
		t.Errorf("the bot said %q", got)
	}
}

// The second way: people ask for access again. The owner imports what they wrote before.
func TestABotThatMovesWithoutABackupKnowsNoOneAndLosesNoMessage(t *testing.T) {
	t.Parallel()
	h, sim, model, ada := atFirst(t)
	to := h.other()
	before := ada.Send("While no gateway has the bot.")
	h.gives(to, func() {})
	code := pairingCode.FindString(hear(t, sim, ada.DM(), before.ID, "Your code is").Text)
	model.Script(llmtest.Say("Welcome again."))
	if exit, _, errs := to.run("pairing", "approve", code); exit != exitClean {
		t.Fatal(code, errs)
	}
	hear(t, sim, ada.DM(), before.ID, "Welcome again.")
	asked := model.Requests()
	last := string(asked[len(asked)-1].Body)
	if !strings.Contains(last, "While no gateway has the bot.") || strings.Contains(last, "Sencha") {
		t.Errorf("the model is told: %s", last)
	}
	if exit, out, errs := to.run("import", h.vault()); exit != exitClean || !strings.Contains(out, "(a vault): 1 added") || !strings.Contains(out, " 0 failed.") {
		t.Errorf("the import: exit code %d: %s%s", exit, out, errs)
	}
}
