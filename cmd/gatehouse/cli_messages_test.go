package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever uses a command wrongly reads what to do next.
func TestAnErrorOfACommandSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	says := func(code int, want string, args ...string) {
		t.Helper()
		got, out, errs := h.run(args...)
		if got != code || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s %s, want %d and %q", args, got, out, errs, code, want)
		}
	}
	vault := h.vault()
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "none")
	for _, args := range [][]string{{"people", "list"}, {"export", "abc"}, {"agents", "list"}, {"agents", "samples"}, {"backup", filepath.Join(h.dir, "x.tar.gz")}, {"search", "tea"}} {
		says(exitFailure, "under systemd: 'sudo gatehousectl ...'), where GATEHOUSE_VAULT_PATH names its vault", args...)
	}
	if _, err := os.Stat(h.vault()); err == nil {
		t.Error("a command that only reads has made a vault")
	}
	h.env["GATEHOUSE_VAULT_PATH"] = vault
	says(exitUsage, "Did you mean 'gatehouse version'?", "--version")
	says(exitUsage, `--uses: must be a whole number, not "x"`, "invite", "--uses", "x")
	says(exitUsage, "missing flags: --scope=SCOPE,...", "keys", "create", "x")
	says(exitFailure, "start it with 'gatehouse serve'", "doctor", "--live")
	says(exitFailure, "name the archive that 'gatehouse backup' or the panel wrote", "restore", filepath.Join(h.dir, "nothing"))
	says(exitFailure, "make it first, or name another", "backup", filepath.Join(h.dir, "nothing", "x.tar.gz"))
	p := h.serve(nil)
	for command, list := range map[string]string{
		"keys revoke x": "keys list", "keys rotate x": "keys list", "invite revoke x": "invite list", "pairing approve x": "pairing list", "pairing revoke telegram 1": "people list",
		"admins role x admin": "admins list", "admins remove x": "admins list", "admins sessions x": "admins list", "export x": "search WORDS", "explain --session x ls": "search WORDS",
	} {
		says(exitFailure, "\n'gatehouse "+list, strings.Fields(command)...)
	}
	h.env["XDG_RUNTIME_DIR"] = filepath.Join(h.dir, "elsewhere")
	if code, _, errs := h.run("people", "list"); code != exitFailure || !strings.Contains(errs, "with its XDG_RUNTIME_DIR or TMPDIR (under systemd: 'sudo gatehousectl ...')") || strings.Contains(errs, "No gateway runs") {
		t.Errorf("where the socket is not: %d %s", code, errs)
	}
	p.stop()
	if os.Getuid() == 0 {
		return // who may open everything
	}
	if err := os.Chmod(h.vault(), 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(h.vault(), 0o700) }()
	says(exitFailure, "run the command as the gateway's user", "people", "list")
	says(exitFailure, "run the command as the gateway's user", "backup", filepath.Join(h.dir, "x.tar.gz"))
}
