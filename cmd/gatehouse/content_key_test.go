package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/core/store"
)

const encryptedText = "Always mention the grey heron of Lake Orta."

// remembers has the running gateway store an encrypted text.
func (h *home) remembers(p *proc) {
	h.t.Helper()
	resp := h.open(p, "POST", "/api/memory", fmt.Sprintf(`{"text":%q}`, encryptedText), nil)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		h.t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// memory returns what the running gateway lists as remembered.
func (h *home) memory(p *proc) string {
	h.t.Helper()
	return h.api(p, "/api/memory")
}

func (p *proc) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		p.t.Fatalf("it ended with %d:\n%s", code, p.err.String())
	}
}

// keyIDs returns the ids of the keys in the key file, the first one in front.
func (h *home) keyIDs() (ids []string) {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.vault()+"-keys", "content.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if id, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(id, "#") {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestTheContentKeyIsRotatedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	h.remembers(p)
	first := h.keyIDs()
	code, out, errs := h.run("keys", "content", "rotate")
	if code != 0 || len(first) != 1 {
		t.Fatalf("%d %s %s; keys before: %v", code, out, errs, first)
	}
	keys := h.keyIDs()
	if len(keys) != 2 || keys[0] == first[0] || keys[1] != first[0] {
		t.Errorf("the key file has %v, after %v", keys, first)
	}
	for _, want := range []string{"Encrypted 2 texts again. The key is " + keys[0] + ": copy the key file.", "Only backups from before need the earlier keys in the file: " + first[0]} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if got := h.memory(p); !strings.Contains(got, "grey heron") {
		t.Errorf("while it runs: %s", got)
	}
	p.stop()
	p = h.serve(nil)
	if got := h.memory(p); !strings.Contains(got, "grey heron") {
		t.Errorf("after a restart: %s", got)
	}
	if _, log, _ := h.run("audit", "--action", "content_key.rotate"); !strings.Contains(log, keys[0]) {
		t.Errorf("in the audit log: %s", log)
	}
	p.stop()
	if code, out, errs := h.run("keys", "content", "rotate", "--json"); code != 0 || !strings.Contains(out, `"rows": 2`) {
		t.Errorf("without a running gateway: %d %s %s", code, out, errs)
	}
}

func TestALostContentKeyIsGivenUpOnTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	h.remembers(p)
	p.stop()
	lost := h.keyIDs()[0]
	file := filepath.Join(h.vault()+"-keys", "content.key")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := h.run("serve"); code == 0 || !strings.Contains(errs, lost) || !strings.Contains(errs, "GATEHOUSE_CONTENT_KEY_FILE") || !strings.Contains(errs, "--lost-content-key") {
		t.Fatalf("without the key file: %d %s", code, errs)
	}
	if code, out, errs := h.run("doctor"); code == 0 || !strings.Contains(out+errs, "encrypted with the key "+lost) {
		t.Errorf("doctor finds the gateway able to start: %d %s %s", code, out, errs)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("a new key file was made by a start that was refused")
	}
	p = h.start(nil, "serve", "--lost-content-key")
	p.says("msg=serving")
	if keys := h.keyIDs(); len(keys) != 1 || keys[0] == lost {
		t.Errorf("the new key file has %v", keys)
	}
	if got := h.memory(p); strings.Contains(got, "grey heron") {
		t.Errorf("a text of the lost key: %s", got)
	}
	if _, log, _ := h.run("audit", "--action", "content_key.lost"); !strings.Contains(log, h.keyIDs()[0]) {
		t.Errorf("in the audit log: %s", log)
	}
	h.remembers(p)
	if got := h.memory(p); !strings.Contains(got, "grey heron") {
		t.Errorf("with the new key: %s", got)
	}
	if _, out, errs := h.run("doctor"); strings.Contains(out+errs, "encrypted with the key") {
		t.Errorf("doctor misses a key that is not needed: %s %s", out, errs)
	}
	p.stop()
	h.serve(nil).stop()
}

// A backup has ciphertext and no key: a restore names the key, and a start without it is
// refused.
func TestARestoreNamesTheContentKeyThatItsTextsNeed(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	h.remembers(p)
	p.stop()
	key := h.keyIDs()[0]
	file := filepath.Join(h.dir, "b.tar.gz")
	keyFile := filepath.Join(h.vault()+"-keys", "content.key")
	if code, out, errs := h.run("backup", file); code != 0 || !strings.HasSuffix(out, "Not in it: the key file "+keyFile+". A restore on another machine needs it to read the encrypted texts: keep a copy of it, elsewhere than the backup.\n") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if code, out, errs := h.run("backup", file+"2", "--json"); code != 0 || !strings.Contains(out, `"content_key_file": "`+keyFile+`"`) {
		t.Errorf("as JSON: %d %s %s", code, out, errs)
	}
	raw, err := exec.Command("tar", "-xzOf", file).Output()
	if err != nil || len(raw) == 0 {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(h.vault()+"-keys", "content.key"))
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(secret)), " ")
	for _, what := range []string{"grey heron", strings.TrimSpace(value)} {
		if what == "" || strings.Contains(string(raw), what) {
			t.Errorf("the backup has %q", what)
		}
	}
	was := h.vault() + "-keys"
	for _, err := range []error{os.RemoveAll(filepath.Join(h.dir, "run")), os.Mkdir(filepath.Join(h.dir, "run"), 0o700)} { // the key of the API is of the vault before
		if err != nil {
			t.Fatal(err)
		}
	}
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "new")
	code, out, errs := h.run("restore", file)
	if code != 0 || !strings.Contains(out, "encrypted with the key "+key+": put the key file that has it at "+filepath.Join(h.vault()+"-keys", "content.key")) {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if code, _, errs := h.run("serve"); code == 0 || !strings.Contains(errs, key) {
		t.Errorf("without the key: %d %s", code, errs)
	}
	if err := os.MkdirAll(h.vault()+"-keys", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(was, "content.key"), filepath.Join(h.vault()+"-keys", "content.key")); err != nil {
		t.Fatal(err)
	}
	p = h.serve(nil)
	if got := h.memory(p); !strings.Contains(got, "grey heron") {
		t.Errorf("with the key: %s", got)
	}
	p.stop()
	h.env["GATEHOUSE_CONTENT_KEY_FILE"] = filepath.Join(h.vault()+"-keys", "content.key")
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "newer")
	if code, out, errs := h.run("restore", file); code != 0 || !strings.Contains(out, "The key file "+h.env["GATEHOUSE_CONTENT_KEY_FILE"]+" opens the encrypted texts.") || strings.Contains(out, "put the key file") {
		t.Errorf("where the key file is: %d %s %s", code, out, errs)
	}
}

// Earlier versions stored it as it is.
func TestTheSecretOfAnAuthenticatorAppIsEncryptedAtTheNextStartAndInNoBackup(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.serve(nil).stop()
	const secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	db, err := store.Open(t.Context(), filepath.Join(h.vault(), "Chat", "sessions.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO admin_totp (user_id, secret, confirmed, at) VALUES (1, $1, 1, '2026-01-01T00:00:00.000000Z')`, secret)
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	p := h.serve(nil)
	for _, suffix := range []string{"", "-wal"} {
		if b, err := os.ReadFile(filepath.Join(h.vault(), "Chat", "sessions.db"+suffix)); err != nil || strings.Contains(string(b), secret) {
			t.Errorf("sessions.db%s has the secret: %v", suffix, err)
		}
	}
	if code, out, errs := h.run("keys", "content", "rotate"); code != 0 || !strings.Contains(out, "Encrypted 1 text") {
		t.Errorf("a rotation does not cover it: %d %s %s", code, out, errs)
	}
	file := filepath.Join(h.dir, "b.tar.gz")
	if code, _, errs := h.run("backup", file); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	p.stop()
	raw, err := exec.Command("tar", "-xzOf", file).Output()
	if err != nil || !strings.Contains(string(raw), "admin_totp") || strings.Contains(string(raw), secret) {
		t.Errorf("the backup has the secret: %v", err)
	}
}
