package main

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
)

// The help of a command that may be left out has the flags that it takes.
func TestTheHelpOfInviteHasTheFlagsOfCreate(t *testing.T) {
	h := newHome(t, nil)
	code, out, _ := h.run("invite", "--help")
	for _, want := range []string{"invite list", "Without a command it is 'gatehouse invite create':", "--bot=", "--trust=", "--uses=", "--expires=", "--for="} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%d: no %q in\n%s", code, want, out)
		}
	}
	if code, out, _ := h.run("send", "--help"); code != 0 || !strings.Contains(out, "--bot=") {
		t.Errorf("%d\n%s", code, out)
	}
}

// Where a bot has to be named, the error lists those there are.
func TestAnErrorAboutTheBotListsTheBots(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	fails := func(says string, args ...string) {
		t.Helper()
		if code, out, errs := h.run(args...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s %s, want %q", args, code, out, errs, says)
		}
	}
	fails("no bot is configured: add one", "send", "hello")
	fails("no bot is configured", "invite")
	h.env["GATEHOUSE_TELEGRAM_TOKEN"], h.env["GATEHOUSE_DISCORD_TOKEN"] = telegramtest.DefaultToken, discordtest.DefaultToken
	h.env["GATEHOUSE_TELEGRAM_API_URL"], h.env["GATEHOUSE_DISCORD_API_URL"] = "http://127.0.0.1:1", "http://127.0.0.1:1"
	fails("there are several bots; name one of them: discord, telegram", "send", "hello")
	fails("name one of the bots: discord, telegram", "invite")
	fails("there is no bot nope; the bots are discord, telegram", "send", "--bot", "nope", "hello")
	fails("there is no bot nope; name one of the bots: discord, telegram", "invite", "--bot", "nope")
}

// On the command line an invitation is made with its link, listed without its
// code, used, and taken back.
func TestInvitationsOnTheCommandLine(t *testing.T) {
	sim := newSim(t)
	h := newHome(t, sim)
	h.serve(nil)
	knowsItsName(t, sim)
	if code, _, errs := h.run("invite", "--uses", "0"); code != exitUsage || !strings.Contains(errs, "--uses") {
		t.Errorf("for nobody: %d %q", code, errs)
	}
	code, out, errs := h.run("invite", "--trust", "vault", "--uses", "2", "--for", "48h")
	secret := regexp.MustCompile(`/pair ([A-Z0-9-]{19})`).FindStringSubmatch(out)
	if code != 0 || secret == nil || !strings.Contains(out, "2 people at trust vault, for 2 days") || !strings.Contains(out, "start="+secret[1]) {
		t.Fatalf("invite: %d %q %q", code, out, errs)
	}
	u := sim.NewUser("Eve")
	u.Send("/start " + secret[1])
	hear(t, sim, u.DM(), 0, "Your invitation is accepted")
	code, out, errs = h.run("invite", "list")
	row := regexp.MustCompile(`(?m)^([a-z0-9]{16}) +telegram +vault +dm +1 `).FindStringSubmatch(out)
	if code != 0 || row == nil || strings.Contains(out, secret[1]) {
		t.Fatalf("list: %d %q %q", code, out, errs)
	}
	if code, out, errs = h.run("invite", "revoke", row[1]); code != 0 || !strings.Contains(out, "Taken back") {
		t.Errorf("revoke: %d %q %q", code, out, errs)
	}
	if code, _, errs = h.run("invite", "revoke", row[1]); code == 0 || !strings.Contains(errs, "no such invitation") {
		t.Errorf("revoke again: %d %q", code, errs)
	}
	if code, out, _ = h.run("invite", "list"); code != 0 || !strings.Contains(out, "No invitations") {
		t.Errorf("list: %d %q", code, out)
	}
	if code, _, errs = h.run("invite", "--bot", "nope"); code == 0 || !strings.Contains(errs, "there is no bot nope; name one of the bots: telegram") {
		t.Errorf("an invitation to no bot: %d %q", code, errs)
	}
}
