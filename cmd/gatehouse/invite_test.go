package main

import (
	"regexp"
	"strings"
	"testing"
)

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
