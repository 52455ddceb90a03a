package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
)

// longPath makes a file at a path in dir that is longer than a backup takes, and
// returns the first part of the path.
func longPath(t *testing.T, dir string) string {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Repeat("l", 200)
	for range 21 {
		if err := root.Mkdir(first, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(first)
		if err != nil {
			t.Fatal(err)
		}
		_ = root.Close()
		root = next
	}
	defer root.Close()
	if err := root.WriteFile("deep.md", []byte("deep"), 0o600); err != nil {
		t.Fatal(err)
	}
	return first
}

// A backup stores names with a backslash, leaves out what it cannot store, lists
// that with exit code 1, and doctor says so before.
func TestABackupListsWhatItCannotHoldAndStoresTheRest(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.run("pairing", "list") // makes the database
	dir := filepath.Join(h.vault(), "Odd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`back\slash.md`, `..\up.md`, "new\nline.md", "latin\xe9.md", "folder\xff/inner.md", "plain.md"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Skip("this file system takes only UTF-8: ", err)
		}
		if err := os.WriteFile(path, []byte("text of "+name), 0o600); err != nil {
			t.Skip("this file system takes only UTF-8: ", err)
		}
	}
	if err := os.Symlink(`back\slash.md`, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	long := longPath(t, dir)

	code, out, _ := h.run("doctor", "--json")
	if !strings.Contains(out, "3 files or folders cannot be in a backup") || !strings.Contains(out, `latin\\xe9.md`) {
		t.Errorf("doctor: %d\n%s", code, out)
	}
	file := filepath.Join(h.dir, "b.tar.gz")
	code, out, errs := h.run("backup", file)
	if code != 1 || !strings.Contains(out, "Backed up") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	for _, want := range []string{"3 files or folders cannot be in a backup", `Missing: "Odd/latin\xe9.md" (its name is not UTF-8)`, `Missing: "Odd/folder\xff" (its name is not UTF-8)`, "(its path is longer than 4090 bytes)"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s", want, errs)
		}
	}
	code, out, _ = h.run("backup", "--json", file+"2")
	var report struct {
		Missed []string
		Misses int
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || report.Misses != 3 || len(report.Missed) != 3 {
		t.Errorf("%d %v %+v", code, err, report)
	}

	// All others come back.
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "restored")
	if code, out, errs := h.run("restore", file); code != 0 {
		t.Fatalf("restore: %d %s %s", code, out, errs)
	}
	var names []string
	entries, err := os.ReadDir(filepath.Join(h.dir, "restored", "Odd"))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{`..\up.md`, `back\slash.md`, "link", long, "new\nline.md", "plain.md"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("restored %q (%v), want %q", names, err, want)
	}
	if text, err := os.ReadFile(filepath.Join(h.dir, "restored", "Odd", "link")); err != nil || string(text) != `text of back\slash.md` {
		t.Errorf("through the link: %q, %v", text, err)
	}
}

func TestWhatAKilledBackupLeftIsDeletedAtTheNextStart(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.run("pairing", "list")
	many(t, h.vault(), 3000)
	file := filepath.Join(h.dir, "b.tar.gz")
	part := func() []string {
		left, _ := filepath.Glob(file + "*")
		return left
	}
	for left := []string(nil); len(left) == 0; left = part() {
		p := h.start(nil, "backup", file)
		p.sees(func() bool {
			st, err := os.Stat(file + ".part")
			return err == nil && st.Size() >= 10_000 || isThere(file)
		})
		_ = p.cmd.Process.Kill()
		p.end()
		_ = os.Remove(file)
	}
	p := h.serve(nil)
	if left := part(); len(left) != 0 {
		t.Errorf("after the start there is %v", left)
	}
	if !strings.Contains(p.err.String(), "deleted what a backup left") {
		t.Errorf("the log does not say so:\n%s", p.err.String())
	}
}

// The panel's backups and the keys of encrypted columns need directories next to the vault
// that the gateway may write: the unit makes them, and image and compose file have volumes.
func TestBothDeploymentsHaveDirectoriesForThePanelsBackupsAndTheKeys(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	dirs := func(text string) []string {
		m := regexp.MustCompile(`GATEHOUSE_VAULT_PATH=(\S+)`).FindStringSubmatch(text)
		if m == nil || strings.Contains(text, "GATEHOUSE_BACKUP_PATH=") || strings.Contains(text, "GATEHOUSE_CONTENT_KEY_FILE=") {
			t.Fatal("the vault is set in another way")
		}
		cfg := configs.Default()
		cfg.VaultPath = m[1]
		return []string{cfg.BackupDir(), filepath.Dir(cfg.ContentKeyPath())}
	}
	unit := read("configs/systemd/gatehouse.service")
	state := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindStringSubmatch(unit)
	for _, dir := range dirs(unit) {
		if want, ok := strings.CutPrefix(dir, "/var/lib/"); state == nil || !ok || !slices.Contains(strings.Fields(state[1]), want) {
			t.Errorf("the unit's StateDirectory is %q and has no %s", state, dir)
		}
	}
	image, compose := read("Dockerfile"), read("configs/compose.yaml")
	for _, want := range dirs(image) {
		if !regexp.MustCompile(`(?m)^VOLUME .*`+want+`( |$)`).MatchString(image) || !regexp.MustCompile(`(?m)^COPY --from=build --chown=65532:65532 \S+ `+want+`$`).MatchString(image) {
			t.Errorf("the image has no volume at %s that its user may write", want)
		}
		if !regexp.MustCompile(`(?m)^ +- \w+:` + want + `$`).MatchString(compose) {
			t.Errorf("the compose file has no volume at %s", want)
		}
	}
}
