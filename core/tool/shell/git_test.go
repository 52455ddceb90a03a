//go:build linux

package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/sandbox"
)

// A repository that names programs (bare, with a monitor, or with hooks) has
// none of them run by an everyday git command, at any trust.
func TestARepositoryRunsNoneOfItsProgramsUnasked(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	h := newHouse(t, box(t), sandbox.Limits{})
	const make = `set -e; unset ${!GIT_CONFIG_@}; umask 077
mkdir -p bare && cd bare && mkdir -p objects refs && echo 'ref: refs/heads/main' > HEAD
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch ran-bare; false"\n' > config; cd ..
git init -q tree && cd tree && git config core.fsmonitor 'touch ran-monitor; false' && git config user.name x && git config user.email x@y
printf '#!/bin/sh\ntouch ran-hook\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout
echo a > a && git add a && git commit -qm a; rm -f ran-*`
	// A person or another program made them, not the tool.
	cmd := exec.Command("/bin/bash", "-c", make)
	dir := filepath.Join(h.vault.Path(), "Guests", "7")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	use := "for d in bare tree; do (cd $d; git status; git diff; git checkout -q -b x; git switch -q -c y) >/dev/null 2>&1; done; true"
	// Without the settings they all run: the repositories are what they are meant to be.
	cmd = exec.Command("/bin/bash", "-c", use)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := ran(t, dir); len(got) != 3 {
		t.Fatalf("without the settings only %v run", got)
	}
	at := map[core.Trust]string{core.Full: "Guests/7", core.Sandboxed: "Guests/7"}
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		h.do(t, h.turn(t, trust, at[trust]), "cd "+dir+" || exit 0; "+use) // at vault the folder is hidden
		if got := ran(t, dir); len(got) != 0 {
			t.Errorf("%s: %v", trust, got)
		}
	}
	if _, err := h.try(t.Context(), h.turn(t, core.Vault, "Guests/7"), use); core.KindOf(err) != core.Busy || !strings.Contains(core.TextOf(err), "Guests/7 is hidden here") {
		t.Errorf("in a hidden working directory a command is started elsewhere: %v", err)
	}
	if r := h.do(t, h.turn(t, core.Full, "Guests/7"), "cd tree && git log --oneline | wc -l"); strings.TrimSpace(r.Text) != "1" {
		t.Errorf("git does not work at full trust: %s", r.Text)
	}
}

// ran lists which programs of the repositories have run, and forgets it.
func ran(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "ran-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
