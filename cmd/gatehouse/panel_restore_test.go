package main

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var backupName = regexp.MustCompile(`id="b-(gatehouse-\d{8}-\d{6}(-before-restore)?\.tar\.gz)"`)

const backupsPage = "/admin/settings/backups"

// shows waits until a page has all texts, and returns it. While the gateway is away it
// asks again.
func (b *browser) shows(path string, texts ...string) string {
	b.w.t.Helper()
	page := ""
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		if resp, err := b.http.Get("http://" + b.w.cfg.Addr + path); err == nil {
			body, _ := io.ReadAll(resp.Body) // it may be cut when the gateway stops
			_ = resp.Body.Close()
			if page = string(body); !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(page, s) }) {
				return page
			}
		}
		select {
		case <-tick.C:
		case <-end:
			b.w.t.Fatalf("%s never shows %q: %s", path, texts, page)
		}
	}
}

// backsUp makes a backup in the panel and returns its name.
func (b *browser) backsUp() string {
	b.w.t.Helper()
	b.submit(backupsPage, b.page(backupsPage), url.Values{})
	return backupName.FindStringSubmatch(b.shows(backupsPage, "The backup is made."))[1]
}

// restores presses Restore and returns the page that follows.
func (b *browser) restores(name string) string {
	b.w.t.Helper()
	_, page := b.submit(backupsPage+"/"+name+"/restore", b.page(backupsPage), url.Values{})
	return page
}

// backups returns what is in the directory of backups.
func (h *home) backups() (names []string) {
	entries, _ := os.ReadDir(h.vault() + "-backups")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestABackupIsRestoredInThePanelAndUndoneByTheOneBefore(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"] = "open"
	p := h.serve(nil)
	b := h.panel(p)
	ada := sim.NewUser("Ada")
	first := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), first.ID, "tea")
	name := b.backsUp()
	later := ada.Send("And is the word marmalade known?")
	hear(t, sim, ada.DM(), later.ID, "")
	b.shows("/admin/chats?q=marmalade", `<tr id="s-`)
	note := filepath.Join(h.vault(), "later.md")
	if err := os.WriteFile(note, []byte("written later"), 0o600); err != nil {
		t.Fatal(err)
	}

	if page := b.restores(name); !strings.Contains(page, "restoring-h") {
		t.Fatal(page)
	}
	b.shows(backupsPage, "Everything since then will be as it was then", "/admin/settings/restore/cancel")
	if page := b.page("/admin"); !strings.Contains(page, "takes the place of what is there now") {
		t.Error("the overview does not say that a backup is being restored")
	}
	page := b.shows(backupsPage, "Restored "+name, "What was there before is the backup")
	if p.ended() {
		t.Fatal("the process has ended")
	}
	before := regexp.MustCompile(`gatehouse-\d{8}-\d{6}-before-restore\.tar\.gz`).FindString(page)
	if names := backupName.FindAllStringSubmatch(page, -1); len(names) != 2 || names[0][1] != before || !strings.Contains(page, "before a restore") {
		t.Errorf("the list has %q", names)
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("a file of later is still in the vault")
	}
	if page := b.page("/admin/chats?q=marmalade"); !strings.Contains(page, "Nothing matches") {
		t.Error("a message of later is still there")
	}
	if page := b.page("/admin/audit?action=backup"); !strings.Contains(page, "restored the backup "+name) {
		t.Error("the audit log does not say that it was restored")
	}
	if code, out, errs := h.run("audit", "--json", "--action", "backup.restore"); code != 0 || !strings.Contains(out, `"user_id":1`) || !strings.Contains(out, before) {
		t.Errorf("who restored it: %d %s %s", code, out, errs)
	}
	again := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), again.ID, "tea")

	b.restores(before)
	b.shows(backupsPage, "Restored "+before)
	b.shows("/admin/chats?q=marmalade", `<tr id="s-`)
	if text, err := os.ReadFile(note); err != nil || string(text) != "written later" {
		t.Errorf("the file of later: %q %v", text, err)
	}
	if p.ended() {
		t.Error("the process has ended")
	}
	if page := b.page("/admin/audit?action=backup"); !strings.Contains(page, "began to restore the backup "+name) {
		t.Error("the audit log does not say who began it")
	}
	b.submit("/admin/settings/restore/dismiss", b.page(backupsPage), url.Values{})
	if page := b.page(backupsPage); strings.Contains(page, "Restored "+before) {
		t.Error("it is not dismissed")
	}
	again = ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), again.ID, "tea")
}

func TestARestoreThatIsCancelledOrCannotBeDoneChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	b := h.panel(p)
	name := b.backsUp()
	dir := h.vault() + "-backups"
	good, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	b.restores(name)
	page := b.shows(backupsPage, "/admin/settings/restore/cancel", "data-left")
	if _, page := b.submit(backupsPage+"/"+name+"/restore", page, url.Values{}); !strings.Contains(page, "has begun already") {
		t.Error("a second one is not refused")
	}
	if _, page := b.submit("/admin/settings/restore/cancel", page, url.Values{}); !strings.Contains(page, "The restore is cancelled. Nothing was changed.") || strings.Contains(page, "restoring-h") {
		t.Error("it is not cancelled: " + page)
	}
	if page := b.page("/admin/audit?action=backup"); !strings.Contains(page, "cancelled the restore of the backup "+name) {
		t.Error("the audit log does not say that it was cancelled")
	}

	bad := slices.Clone(good)
	bad[len(bad)-8] ^= 1 // of the checksum: another bit may be one of a repetition, and change nothing
	put("gatehouse-20200101-000000.tar.gz", bad)
	put("gatehouse-20200102-000000.tar.gz", []byte("no archive of anything, but a text"))
	b.restores("gatehouse-20200101-000000.tar.gz")
	b.shows(backupsPage, "gatehouse-20200101-000000.tar.gz was not restored", "damaged", "Nothing was changed.")
	b.restores("gatehouse-20200102-000000.tar.gz")
	b.shows(backupsPage, "gatehouse-20200102-000000.tar.gz was not restored", "This is not a backup")
	if page := b.restores("gatehouse-20200103-000000.tar.gz"); !strings.Contains(page, "There is no such backup any more") {
		t.Error("one that is gone: " + page)
	}

	// What was well when it was checked may not be when the gateway has stopped.
	b.restores(name)
	b.shows(backupsPage, "/admin/settings/restore/cancel", "data-left")
	put(name, bad)
	b.shows(backupsPage, name+" was not restored", "damaged")
	b.shows("/admin", `id="a-restore"`, name+" was not restored, and nothing was changed")
	put(name, good)
	b.restores(name)
	b.shows(backupsPage, "/admin/settings/restore/cancel", "data-left")
	odd := filepath.Join(h.vault(), "\xff.md")
	if err := os.WriteFile(odd, []byte("in no backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.shows(backupsPage, name+" was not restored", "a restore would lose it")
	if text, err := os.ReadFile(odd); err != nil || string(text) != "in no backup" {
		t.Errorf("%q %v", text, err)
	}
	if names := h.backups(); slices.ContainsFunc(names, func(s string) bool { return strings.Contains(s, "before-restore") }) {
		t.Errorf("the backup of what was not replaced is left: %q", names)
	}
	if p.ended() {
		t.Error("the process has ended")
	}
	b.submit("/admin/settings/restore/dismiss", b.page(backupsPage), url.Values{})
	if page := b.page("/admin"); strings.Contains(page, "was not restored") {
		t.Error("the failure is not dismissed")
	}
}
