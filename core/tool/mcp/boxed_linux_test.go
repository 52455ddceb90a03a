package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
	"gatehouse/core/tool/mcp"
)

// box is the sandbox of this machine; without one the test is skipped, and
// fails under CI=true.
func box(t testing.TB) sandbox.Box {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, why := sandbox.Open(sandbox.Auto, self)
	if b == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return b
}

// marked are three servers, one for each trust.
const marked = `
	"guests": {"command": "{SERVER}", "trust": "sandboxed", "env": {"TOKEN": "${NOTES_TOKEN}"}},
	"house": {"command": "{SERVER}", "trust": "vault"},
	"mine": {"command": "{SERVER}", "trust": "full"},
	"plain": {"command": "{SERVER}"}`

func TestAServerIsOfferedFromTheTrustOnThatItIsMarkedFor(t *testing.T) {
	h := newHouse(t, unhurried{}, box(t), marked)
	for trust, want := range map[core.Trust][]string{
		core.Stranger: nil, core.Sandboxed: {"guests"}, core.Vault: {"guests", "house"}, core.Full: {"guests", "house", "mine", "plain"},
	} {
		turn := h.turn(t, trust, 7, "run-"+trust.String())
		o := h.servers.Equip(t.Context(), turn, nil)
		if !slices.Equal(o.Servers, want) || len(o.Warnings) > 0 || len(o.Missing) > 0 {
			t.Errorf("%v: %v, %v %v", trust, o.Servers, o.Warnings, o.Missing)
		}
		h.servers.End(turn.Run)
	}
	// A tool that a turn got hold of in another way is refused all the same.
	_, o := h.full(t)
	_, err := try(t.Context(), t, h.turn(t, core.Vault, 7, "r"), o, "mcp__plain__echo", `{"text": "x"}`)
	if core.KindOf(err) != core.Denied {
		t.Errorf("%v", err)
	}
}

func TestWithoutASandboxNoProgramRunsBelowFull(t *testing.T) {
	h := newHouse(t, unhurried{}, nil, marked)
	turn := h.turn(t, core.Vault, 7, "run")
	o := h.servers.Equip(t.Context(), turn, nil)
	if len(o.Tools)+len(o.Servers) > 0 || len(o.Missing) != 2 || !strings.Contains(o.Missing[0], "The MCP server guests is not offered at trust vault, because this machine has no sandbox") {
		t.Errorf("%v %v", names(o), o.Missing)
	}
	_, full := h.full(t)
	if _, err := try(t.Context(), t, turn, full, "mcp__guests__echo", `{"text": "x"}`); core.KindOf(err) != core.Denied {
		t.Errorf("%v", err)
	}
}

func TestBelowFullAProgramSeesOnlyWhatItsTurnMay(t *testing.T) {
	h := newHouse(t, unhurried{}, box(t), marked)
	outside := filepath.Join(filepath.Dir(h.vault.Path()), "outside.txt")
	for name, text := range map[string]string{
		outside: "CANARY", h.path("Notes.md"): "a note", h.path(".env"): "CANARY", h.path("Guests/7/mine.md"): "my own", h.path("Guests/8/other.md"): "CANARY",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read := func(name string) string { return fmt.Sprintf(`{"text": %q}`, name) }
	full, o := h.full(t)
	for _, c := range [][2]string{{"mcp__guests__read", read(outside)}, {"mcp__guests__dial", read(l.Addr().String())}, {"mcp__guests__write", read(h.path("by-full"))}} {
		if r, said := do(t, full, o, c[0], c[1]); r.IsError {
			t.Errorf("fails at full trust, so it shows nothing below: %v %s", c, said)
		}
	}
	if b, _ := os.ReadFile(h.path("by-full")); string(b) != "by the server" {
		t.Error("nothing was written at full trust, so that nothing is below shows nothing")
	}
	for trust, open := range map[core.Trust][]string{core.Vault: {"Notes.md", "Guests/7/mine.md"}, core.Sandboxed: {"Guests/7/mine.md"}} {
		turn := h.turn(t, trust, 7, "run-"+trust.String())
		o := h.servers.Equip(t.Context(), turn, nil)
		for _, name := range open {
			if r, said := do(t, turn, o, "mcp__guests__read", read(h.path(name))); r.IsError {
				t.Errorf("%v: %s is closed: %s", trust, name, said)
			}
		}
		for _, name := range []string{outside, h.path(".env"), h.path("Notes.md"), h.path("Guests/8/other.md"), "/proc/1/environ", fmt.Sprintf("/proc/%d/environ", os.Getpid())} {
			r, said := do(t, turn, o, "mcp__guests__read", read(name))
			allowed := trust == core.Vault && (strings.HasSuffix(name, "Notes.md") || strings.HasSuffix(name, "other.md")) // the vault level sees guests' folders
			if strings.Contains(said, "CANARY") && !allowed || strings.Contains(said, "hunter2") || !r.IsError && !allowed && name != "/proc/1/environ" {
				t.Errorf("%v: read %s: %q", trust, name, said)
			}
		}
		for _, name := range []string{outside + "2", h.path("new.md"), h.path("Guests/7/new.md"), h.path(".mcp.json")} {
			do(t, turn, o, "mcp__guests__write", read(name)) // /tmp is its own, so this may go well
			if b, _ := os.ReadFile(name); strings.Contains(string(b), "by the server") {
				t.Errorf("%v: wrote %s", trust, name)
			}
		}
		if r, said := do(t, turn, o, "mcp__guests__dial", read(l.Addr().String())); !r.IsError {
			t.Errorf("%v: reached the network: %s", trust, said)
		}
		_, env := do(t, turn, o, "mcp__guests__env", read(""))
		got := strings.Split(env, "\n")
		slices.Sort(got)
		want := []string{"HOME=/tmp/home", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TOKEN=sesame-open-1"}
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "PWD=") }) // set by bwrap itself
		if !slices.Equal(got, want) {
			t.Errorf("%v: environment %q", trust, got)
		}
		h.servers.End(turn.Run)
	}
}

func TestBelowFullEveryRunHasAProgramOfItsOwn(t *testing.T) {
	h := newHouse(t, unhurried{}, box(t), marked)
	first, second := h.turn(t, core.Sandboxed, 7, "one"), h.turn(t, core.Sandboxed, 7, "two")
	o := h.servers.Equip(t.Context(), first, nil)
	if r, said := do(t, first, o, "mcp__guests__write", `{"text": "/tmp/left"}`); r.IsError {
		t.Fatal(said)
	}
	if r, said := do(t, first, o, "mcp__guests__read", `{"text": "/tmp/left"}`); r.IsError {
		t.Errorf("what it wrote is gone within the run: %s", said)
	}
	do(t, first, o, "mcp__guests__child", `{"text": ""}`)
	h.servers.End(first.Run)
	if n := inSandboxes(t, h); n > 0 {
		t.Errorf("%d processes are left of a run that has ended", n)
	}
	o = h.servers.Equip(t.Context(), second, nil)
	if r, _ := do(t, second, o, "mcp__guests__read", `{"text": "/tmp/left"}`); !r.IsError {
		t.Error("scratch outlives its run")
	}
	if n := inSandboxes(t, h); n == 0 {
		t.Error("no process is found, so that none was left shows nothing")
	}
	h.servers.End(second.Run)
	// What is late for its run begins nothing.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.servers.Equip(ctx, second, nil)
	if _, err := find(t, o, "mcp__guests__echo").Run(ctx, &tool.Call{Input: json.RawMessage(`{"text": ""}`), Turn: second, Progress: func(string) {}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := inSandboxes(t, h); n > 0 {
		t.Errorf("%d processes of a run that has ended", n)
	}
}

// inSandboxes counts the processes of the host that run the vault's server.
func inSandboxes(t *testing.T, h *house) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		b, _ := os.ReadFile(name)
		if strings.HasPrefix(string(b), h.path("Tools/server")) {
			n++
		}
	}
	return n
}

func TestGuestsAreNotToldWhyAServerFails(t *testing.T) {
	h := newHouse(t, coretest.NewClock(time.Unix(1e9, 0)), box(t), `"guests": {"command": "{SERVER}", "args": ["-exit", "3", "-say", "at /home/owner/x"], "trust": "sandboxed"}, "broken": {"comand": "x"}`)
	o := h.servers.Equip(t.Context(), h.turn(t, core.Sandboxed, 7, "run"), nil)
	if len(o.Warnings) != 1 || o.Warnings[0].Message != "The MCP server guests is not available." {
		t.Errorf("%+v", o.Warnings)
	}
	if got := h.servers.Health()[0]; got.State != mcp.Failing || !strings.Contains(got.Error, "/home/owner") {
		t.Errorf("%+v", got)
	}
}

func TestKnownToolsCostNoStartUntilTheyAreOld(t *testing.T) {
	clock := coretest.NewClock(time.Unix(1e9, 0))
	h := newHouse(t, clock, box(t), `"guests": {"command": "{SERVER}", "trust": "sandboxed"}`)
	for i, want := range []int{1, 1, 2} { // starts so far
		turn := h.turn(t, core.Sandboxed, 7, fmt.Sprint("run ", i))
		o := h.servers.Equip(t.Context(), turn, nil)
		find(t, o, "mcp__guests__echo")
		h.servers.End(turn.Run)
		starts := func() int { return strings.Count(h.log.String(), "an MCP server answers") }
		// A program that is gone may still be known as a connection: then none is begun. Idle is after that.
		until(t, "what was started has ended", func() bool {
			return starts() >= want && h.servers.Health()[0].State == mcp.Idle && inSandboxes(t, h) == 0
		})
		if n := starts(); n != want {
			t.Errorf("run %d: %d starts, want %d", i, n, want)
		}
		if i == 1 {
			clock.Advance(5 * time.Minute)
		}
	}
}
