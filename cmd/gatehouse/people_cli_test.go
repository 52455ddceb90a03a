package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/pairing/people"
)

// approved has these users let in as sandboxed, while the gateway runs.
func (h *home) approved(sim *telegramtest.Server, names ...string) (users []*telegramtest.User) {
	h.t.Helper()
	for _, name := range names {
		u := sim.NewUser(name)
		u.Send("hello")
		hear(h.t, sim, u.DM(), 0, "Your code is")
		var waiting []core.PairingRequest
		if _, out, _ := h.run("pairing", "list", "--json"); json.Unmarshal([]byte(out), &waiting) != nil || len(waiting) != 1 {
			h.t.Fatalf("who waits: %s", out)
		}
		code := waiting[0].Code
		if status, out, errs := h.run("pairing", "approve", code); status != 0 {
			h.t.Fatalf("approve %q: %d %s %s", code, status, out, errs)
		}
		users = append(users, u)
	}
	return users
}

// A list of people has the numbers that other commands take, and so do names and ids of
// platforms; what names no one, or several, points to that list.
func TestPeopleAreListedAndNamedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	p := h.serve(nil)
	if code, out, errs := h.run("people", "list"); code != 0 || !strings.Contains(out, "owner") || !strings.Contains(errs, "'gatehouse claim'") {
		t.Errorf("before anyone is there: %d %s %s", code, out, errs)
	}
	us := h.approved(sim, "Ada Lovelace", "Twin", "Twin")
	code, out, errs := h.run("people", "list")
	row := regexp.MustCompile(`(?m)^(\d+) +Ada Lovelace +guest +access +sandboxed +telegram:(\d+) +telegram$`).FindStringSubmatch(out)
	if code != 0 || row == nil || row[2] != fmt.Sprint(us[0].ID()) || !strings.HasPrefix(out, "USER ") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	var list []people.Listed
	if _, out, _ = h.run("people", "list", "--json"); json.Unmarshal([]byte(out), &list) != nil || len(list) != 4 || list[0].User != core.Operator || len(list[1].Access) != 1 {
		t.Errorf("as JSON: %s", out)
	}
	if _, out, _ = h.run("people", "list", "--state", "none"); strings.Contains(out, "Ada") || !strings.Contains(out, "owner") {
		t.Errorf("without access: %s", out)
	}

	// What a key gets is what its user has, at most.
	for _, ref := range []string{row[1], "ada lovelace", "telegram:" + row[2], row[2]} {
		code, out, errs = h.run("keys", "create", "hers", "--scope", "chat", "--user", ref)
		if code != 0 || !strings.HasPrefix(out, "gh_") || !strings.Contains(errs, "acts for Ada Lovelace (user "+row[1]+") with the scopes chat, at trust sandboxed at most, until 2") {
			t.Errorf("a key for %s: %d %s", ref, code, errs)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"keys", "create", "x", "--scope", "chat", "--user", row[1], "--trust", "vault"}, exitFailure, "user " + row[1] + " has at most trust sandboxed, and no key has more than its user: ask for sandboxed"},
		{[]string{"keys", "create", "x", "--scope", "chat", "--user", "twin"}, exitUsage, "give one of these numbers: "},
		{[]string{"keys", "create", "x", "--scope", "chat", "--user", "Nobody"}, exitUsage, "'gatehouse people list'"},
		{[]string{"keys", "create", "x", "--scope", "chat", "--user", "77"}, exitUsage, "no user has the number 77: 'gatehouse people list'"},
		{[]string{"audit", "--user", "Nobody"}, exitUsage, "'gatehouse people list'"},
		{[]string{"export", "--user", "Nobody", "-o", filepath.Join(h.dir, "x")}, exitFailure, "'gatehouse people list'"},
		{[]string{"forget", "Nobody", "--yes"}, exitUsage, "'gatehouse people list'"},
		{[]string{"users"}, exitUsage, "Did you mean 'gatehouse people list'?"},
	} {
		if code, _, errs := h.run(c.args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: %d %s", c.args, code, errs)
		}
	}
	if code, out, errs := h.run("audit", "--user", "Ada Lovelace"); code != 0 || !strings.Contains(out, "no matching entry") {
		t.Errorf("the audit log of one who did nothing: %d %s %s", code, out, errs)
	}
	if code, _, errs := h.run("pairing", "revoke", "telegram", row[2]); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := h.run("keys", "create", "x", "--scope", "chat", "--user", row[1]); code != exitFailure || !strings.Contains(errs, "has no access of their own to any bot now") {
		t.Errorf("a key for one without access: %d %s", code, errs)
	}
	p.stop()
	if code, out, errs := h.run("people", "list"); code != 0 || !regexp.MustCompile(`Ada Lovelace +guest +none +- `).MatchString(out) {
		t.Errorf("without a running gateway: %d %s %s", code, out, errs)
	}
}

// The export of a user has the files that the panel's has.
func TestExportOfAUserHasTheirFiles(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	p := h.serve(nil)
	ada := h.approved(sim, "Ada")[0]
	sent, err := ada.Post(ada.DM(), telegramtest.Outgoing{Text: "Read this.", File: &telegramtest.File{Kind: "document", Name: "plan.txt", Data: []byte("the attached plan")}})
	if err != nil {
		t.Fatal(err)
	}
	hear(t, sim, ada.DM(), sent.ID, "")
	_, out, _ := h.run("people", "list")
	number := regexp.MustCompile(`(?m)^(\d+) +Ada `).FindStringSubmatch(out)
	if number == nil {
		t.Fatal(out)
	}
	mine, others := filepath.Join("Guests", number[1], "sub", "mine.txt"), filepath.Join("Guests", "99", "other.txt")
	for _, name := range []string{mine, others} {
		path := filepath.Join(h.vault(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("in "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(h.vault(), others), filepath.Join(h.vault(), "Guests", number[1], "link.txt")); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		dir := filepath.Join(h.dir, when)
		code, out, errs := h.run("export", "--user", "Ada", "-o", dir)
		if code != 0 || !strings.Contains(out, "2 files") {
			t.Fatalf("%s: %d %s %s", when, code, out, errs)
		}
		var all []string
		_ = filepath.WalkDir(filepath.Join(dir, "files"), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b, _ := os.ReadFile(path)
				all = append(all, strings.TrimPrefix(path, dir+"/")+": "+string(b))
			}
			return err
		})
		text := strings.Join(all, "\n")
		if !strings.Contains(text, filepath.Join("files", mine)+": in "+mine) || !strings.Contains(text, "the attached plan") || strings.Contains(text, "other.txt") || len(all) != 2 {
			t.Errorf("%s:\n%s", when, text)
		}
	}
	check("running")
	p.stop()
	check("stopped")
}
