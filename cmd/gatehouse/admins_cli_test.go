package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/web/account"
)

// The gateway does not run: the commands work on its files, by the same handler.
func TestAccountsOfThePanelAreManagedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.env["GATEHOUSE_ADMIN_PASSWORD"] = ""
	if code, out, errs := h.run("admins", "list"); code != 0 || !strings.Contains(out, "No accounts: ") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	code, password, errs := h.run("admins", "add", "nina")
	if code != 0 || len(strings.TrimSpace(password)) != 19 || !strings.Contains(errs, "shown only now") {
		t.Fatalf("%d %q %s", code, password, errs)
	}
	for _, do := range [][]string{{"admins", "add", "vera", "--role", "viewer"}, {"admins", "rename", "vera", "vera.k"}, {"admins", "role", "vera.k", "admin"}, {"admins", "reset", "vera.k"}} {
		if code, out, errs := h.run(do...); code != 0 || out == "" {
			t.Errorf("%s: %d %s %s", do, code, out, errs)
		}
	}
	if code, out, errs := h.run("admins", "sessions", "nina"); code != 0 || !strings.Contains(out, "Not signed in anywhere") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, errs := h.run("admins", "sessions", "nina", "--end-all"); code != 0 || !strings.Contains(out, "Ended 0 session(s) of nina") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	var list []account.Account
	_, out, _ := h.run("admins", "list", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 || list[1].Name != "vera.k" || list[1].Role != "admin" || !list[1].MustChange {
		t.Fatalf("%v %s", err, out)
	}
	if code, out, errs := h.run("admins", "remove", "nina"); code != 0 || !strings.Contains(out, "Removed nina") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	for _, refused := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"admins", "remove", "vera.k"}, 1, "last admin"},
		{[]string{"admins", "role", "vera.k", "viewer"}, 1, "last admin"},
		{[]string{"admins", "totp-off", "vera.k"}, 1, "is off"},
		{[]string{"admins", "sessions", "vera.k", "--end", "x"}, 1, "has ended already"},
		{[]string{"admins", "remove", "nina"}, 1, "no account has the name nina"},
		{[]string{"admins", "add", "Nina K"}, exitUsage, "1 to 40 characters"},
		{[]string{"admins", "add", "x", "--role", "boss"}, exitUsage, "admin"},
	} {
		if code, _, errs := h.run(refused.args...); code != refused.code || !strings.Contains(errs, refused.says) {
			t.Errorf("%s: %d %s", refused.args, code, errs)
		}
	}
	if _, out, _ = h.run("audit", "--action", "admin.*"); !strings.Contains(out, "admin.create") || !strings.Contains(out, "admin.remove") || !strings.Contains(out, "cli") {
		t.Errorf("audit:\n%s", out)
	}
}
