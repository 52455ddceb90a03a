//go:build linux

package shell_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool/shell"
	"gatehouse/core/vault"
)

// veiled is a house whose shell hides its folder .parachute and its database.
func veiled(t *testing.T) *house {
	t.Helper()
	base, err := os.MkdirTemp("", "gh-")
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(filepath.Join(base, "vault"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(v.Path(), name) }
	veil, why := sandbox.TryVeil(sandbox.Auto).Open(func() sandbox.Cover {
		return sandbox.Cover{Hidden: []string{at("Chat/sessions.db"), at(".parachute")}, Open: []string{at(".parachute/agents")}}
	})
	if veil == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	s := shell.New(shell.Options{Stage: program(t), Clock: core.System{}, Temp: t.TempDir(), Veil: func() *sandbox.Veil { return veil }, Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp"}})
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), v.Close(), os.RemoveAll(base)); err != nil {
			t.Error(err)
		}
	})
	return &house{vault: v, shell: s}
}

func TestAtFullTrustTheGatewaysOwnFilesStayClosed(t *testing.T) {
	h := veiled(t)
	h.put(t, "Chat/sessions.db=closed", ".parachute/lock=closed", ".parachute/agents/a.md=open\n", "Notes/n.md=open\n")
	full := h.turn(t, core.Full, "")
	if r := h.do(t, full, "cat Notes/n.md .parachute/agents/a.md"); r.Text != "open\nopen\n" {
		t.Errorf("%q", r.Text)
	}
	if r := h.do(t, full, "cat Chat/sessions.db .parachute/lock /proc/self/root/$PWD/Chat/sessions.db 2>&1; ls .parachute"); strings.Contains(r.Text, "closed") || !strings.Contains(r.Text, "agents") {
		t.Errorf("%q", r.Text)
	}
	if r := h.do(t, full, "echo new > Notes/new.md; exit 3"); r.Text != "[Exit code 3]" || !h.has("Notes/new.md") {
		t.Errorf("%q", r.Text)
	}
}

// What holds of commands at full trust without a veil holds behind one.
func TestBehindTheVeilNothingOutlivesItsCommand(t *testing.T) {
	h := veiled(t)
	full := h.turn(t, core.Full, "")
	if r := h.do(t, full, "(setsid sleep 377654 >/dev/null 2>&1 &); nohup sleep 377654 >/dev/null 2>&1 & echo done"); r.Text != "done\n" {
		t.Errorf("%q", r.Text)
	}
	gone(t, "377654")
	if r := h.do(t, full, "(setsid sleep 367654 &); echo before; trap '' TERM; sleep 367654", 1); !strings.Contains(r.Text, "before") || !strings.Contains(r.Text, "time-out") {
		t.Errorf("%q", r.Text)
	}
	gone(t, "367654")
}
