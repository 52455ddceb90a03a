package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/configs"
)

// waits presses Restore and waits until the page counts down.
func (b *browser) waits(name string) {
	b.w.t.Helper()
	b.restores(name)
	b.shows(backupsPage, "/admin/settings/restore/cancel", "data-left")
}

func TestARestoreOnAFullDiskChangesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	b := h.panel(p)
	name := b.backsUp()
	big := make([]byte, 8<<20) // which gzip does not make smaller
	_, _ = rand.Read(big)
	file := filepath.Join(h.vault(), "big")
	if err := os.WriteFile(file, big, 0o600); err != nil {
		t.Fatal(err)
	}
	limitFiles(t, p.cmd.Process.Pid, 6<<20) // the limit stays when it starts again
	b.waits(name)
	b.shows(backupsPage, name+" was not restored", "The disk is full", "Nothing was changed")
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, big) {
		t.Error("the vault was changed", err)
	}
	for _, name := range h.backups() {
		if strings.Contains(name, "before-restore") || strings.Contains(name, ".part") {
			t.Errorf("%s takes room", name)
		}
	}
	limitFiles(t, p.cmd.Process.Pid, ^uint64(0))
	b.waits(name)
	b.shows(backupsPage, "Restored "+name)
	if _, err := os.Stat(file); err == nil {
		t.Error("with room it is not restored")
	}
}

func TestAGatewayThatIsEndedWhileItRestoresStartsWithAWholeVault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		when   func(h *home) bool
	}{
		"killed while what is there is backed up": {syscall.SIGKILL, func(h *home) bool { return strings.Contains(fmt.Sprint(h.backups()), "before-restore.tar.gz.part") }},
		"killed while the backup is unpacked": {syscall.SIGKILL, func(h *home) bool {
			return isThere(filepath.Join(h.vault(), ".gatehouse-restore", "tree", "many"))
		}},
		"stopped while the backup is unpacked": {syscall.SIGTERM, func(h *home) bool {
			return isThere(filepath.Join(h.vault(), ".gatehouse-restore", "tree", "many"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, nil)
			many(t, h.vault(), 3000)
			p := h.serve(nil)
			b := h.panel(p)
			backup := b.backsUp()
			later := filepath.Join(h.vault(), "later.md")
			if err := os.WriteFile(later, []byte("written later"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.waits(backup)
			p.sees(func() bool { return c.when(h) || strings.Count(p.err.String(), "msg=serving") > 1 })
			if err := p.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if code := p.end(); c.signal == syscall.SIGTERM && code != 0 {
				t.Errorf("it ends with %d", code)
			}
			p = h.serve(nil)
			b = h.panel(p)
			page := b.page(backupsPage)
			switch {
			case strings.Contains(page, backup+" was not restored") && strings.Contains(page, "Nothing was changed"):
				if !isThere(later) || strings.Contains(strings.Join(h.backups(), " "), "before-restore") {
					t.Error("something was changed")
				}
			case strings.Contains(page, "Restored "+backup): // it was too fast for us
				if isThere(later) {
					t.Error("it is not restored")
				}
			default:
				t.Errorf("the page does not say what became of it: %s", page)
			}
			if isThere(filepath.Join(h.vault(), ".gatehouse-restore")) {
				t.Error("the work of the restore is left")
			}
			files, err := os.ReadDir(filepath.Join(h.vault(), "many"))
			if err != nil || len(files) == 0 {
				t.Error("the vault is not whole", err)
			}
		})
	}
}

func TestTheCommandLineNamesThePanelToRestoreOverWhatIsThere(t *testing.T) {
	h := newHome(t, nil)
	h.serve(nil)
	file := filepath.Join(h.dir, "b.tar.gz")
	if code, _, errs := h.run("backup", file); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := h.run("restore", file); code != 1 || !strings.Contains(errs, "in the panel, Settings, Backups, Restore") {
		t.Errorf("%d %s", code, errs)
	}
}

// The demo's simulators and its pages come back, too, and --fresh does not empty what
// was restored.
func TestADemoRestoresABackup(t *testing.T) {
	t.Parallel()
	h := newDemoHome(t)
	p := h.start(nil, "demo", "--fresh")
	p.says("Ctrl-C stops it")
	b := h.follow(p.shows(panelLink))
	name := b.backsUp()
	later := filepath.Join(h.dir, stage.Folder, "later.md")
	if err := os.WriteFile(later, []byte("written later"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.waits(name)
	p.sees(func() bool { return strings.Count(p.out.String(), "Ctrl-C stops it") == 2 })
	links := regexp.MustCompile(panelLink).FindAllStringSubmatch(p.out.String(), -1) // an account without a password signs in again
	b = h.follow(links[1][1])
	b.shows(backupsPage, "Restored "+name)
	if isThere(later) || !isThere(filepath.Join(h.dir, stage.Folder, "Public")) {
		t.Error("the vault is not as it was")
	}
	if was, _ := url.Parse(links[0][1]); was.Host != b.w.cfg.Addr {
		t.Errorf("the panel has moved from %s to %s", was.Host, b.w.cfg.Addr)
	}
	p.interrupt()
}

// follow is a browser that follows the demo's link to the panel.
func (h *home) follow(address string) *browser {
	h.t.Helper()
	link, err := url.Parse(address)
	if err != nil {
		h.t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	b := &browser{&world{t: h.t, cfg: &configs.Config{Addr: link.Host}}, &http.Client{Jar: jar}}
	b.page(link.RequestURI())
	return b
}
