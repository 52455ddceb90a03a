//go:build linux

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
	"gatehouse/core/tool"
	"gatehouse/core/tool/shell"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	container.Main()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBuilt()
		os.Exit(code)
	}))
}

// A house is a vault with people in it, and a shell.
type house struct {
	vault *vault.Vault
	shell *shell.Shell
	guest []string // GUEST_READ
	sent  sync.Map // name → when someone else wrote "sent" to it
}

func (h *house) meant(name string, since time.Time, content io.Reader) (yes bool) {
	text := ""
	if content != nil {
		data, _ := io.ReadAll(content)
		text = string(data)
	}
	h.sent.Range(func(k, at any) bool {
		mine := k == name && text == "sent\n" || content == nil && strings.HasPrefix(k.(string), name+"/")
		yes = yes || mine && !at.(time.Time).Before(since)
		return true
	})
	return yes
}

func program(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// box is the sandbox of this machine; without one the test is skipped, and
// fails under CI=true.
func box(t testing.TB) sandbox.Box {
	t.Helper()
	b, why := sandbox.Open(sandbox.Auto, program(t))
	if b == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return b
}

// containers is the container back end of this machine, nil where there is
// none, which is said.
func containers(t testing.TB) sandbox.Box {
	t.Helper()
	dir, err := os.MkdirTemp("", "ghc-") // short: sockets have their place below
	if err != nil {
		t.Fatal(err)
	}
	b, why := container.Open(container.Options{Stage: program(t), Dir: dir})
	t.Cleanup(func() {
		if b != nil {
			container.Close(b)
		}
		_ = exec.Command("chmod", "-R", "u+rwx", dir).Run() // podman's storage has folders that their owner may not read
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if b == nil {
		fmt.Println("SKIPPED: no container back end: " + why)
	}
	return b
}

func newHouse(t testing.TB, b sandbox.Box, limits sandbox.Limits) *house {
	t.Helper()
	base, err := os.MkdirTemp("", "gh-") // short: sockets have their place below
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(filepath.Join(base, "vault"))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{vault: v}
	s := shell.New(shell.Options{
		Meant: h.meant, Box: func() sandbox.Box { return b }, Stage: program(t), Clock: core.System{}, Temp: t.TempDir(), Limits: limits,
		Env: []string{"PATH=" + "/usr/local/bin:/usr/bin:/bin", "HOME=/owner", "GATEHOUSE_ADMIN_PASSWORD=hunter2", "ANTHROPIC_API_KEY=sk-1", "TZ=UTC", "LANG=C.UTF-8"},
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := errors.Join(v.RemoveAll(".parachute"), v.RemoveAll("Guests"), v.Close(), os.RemoveAll(base)); err != nil {
			t.Error(err)
		}
	})
	h.shell = s
	return h
}

// put writes files of the vault, "name" or "name=content".
func (h *house) put(t testing.TB, files ...string) {
	t.Helper()
	for _, f := range files {
		name, content, ok := strings.Cut(f, "=")
		if !ok {
			content = "content of " + name + "\n"
		}
		path := filepath.Join(h.vault.Path(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *house) turn(t testing.TB, trust core.Trust, dir string) *tool.Turn {
	t.Helper()
	d, err := h.vault.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	user := int64(7)
	if dir == "Guests/8" {
		user = 8
	}
	turn := &tool.Turn{User: user, Trust: trust, Session: "s", Run: "r", Vault: h.vault, Dir: d}
	turn.MayRead, turn.MayWrite = permission.Profile{User: user, Trust: trust, GuestRead: h.guest}.Bounds(nil)
	return turn
}

// do runs a command and gives what the model would read.
func (h *house) do(t testing.TB, turn *tool.Turn, command string, more ...any) tool.Result {
	t.Helper()
	r, err := h.try(t.Context(), turn, command, more...)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

func (h *house) try(ctx context.Context, turn *tool.Turn, command string, more ...any) (tool.Result, error) {
	in := map[string]any{"command": command}
	progress := func(string) {}
	for _, m := range more {
		switch m := m.(type) {
		case int:
			in["timeout"] = m
		case func(string):
			progress = m
		}
	}
	raw, _ := json.Marshal(in)
	bash := h.shell.Tool()
	access, err := bash.Touches(turn, raw)
	if err != nil {
		return tool.Result{}, err
	}
	return bash.Run(ctx, &tool.Call{ID: "1", Input: raw, Turn: turn, Access: access, Progress: progress})
}

func (h *house) has(name string) bool {
	_, err := os.Lstat(filepath.Join(h.vault.Path(), name))
	return err == nil
}

var below = []core.Trust{core.Vault, core.Sandboxed}

func TestBashReportsWhatACommandPrintedAndHowItEnded(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		turn := h.turn(t, trust, "")
		for _, c := range []struct {
			command, want string
			failed        bool
		}{
			{"echo one; echo two >&2; echo three", "one\ntwo\nthree\n", false},
			{"true", "[No output]", false},
			{"echo half; exit 3", "half\n[Exit code 3]", true},
			{"printf half; exit 3", "half\n[Exit code 3]", true},
			{"kill -9 $$", "[Exit code 137]", true},
			{"cat", "[No output]", false}, // nothing to read
			{"tty >/dev/null || echo none", "none\n", false},
			{"printf 'a\\000b\\377c'", "ab\uFFFDc", false},
		} {
			r := h.do(t, turn, c.command)
			if r.Text != c.want || r.IsError != c.failed {
				t.Errorf("%s, %s: %q, failed %v", trust, c.command, r.Text, r.IsError)
			}
		}
	}
}

func TestLongOutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	h := newHouse(t, nil, sandbox.Limits{})
	turn := h.turn(t, core.Full, "")
	for _, c := range []struct{ command, begin, end, left string }{
		{"seq 1 200000", "1\n2\n3\n", "\n199999\n200000\n", "… 1258895 characters left out …"},
		{"for i in $(seq 1 40000); do printf é; done", "éé", "éé", "… 10000 characters left out …"},
	} {
		r := h.do(t, turn, c.command)
		if !strings.HasPrefix(r.Text, c.begin) || !strings.HasSuffix(r.Text, c.end) || !strings.Contains(r.Text, c.left) {
			t.Errorf("%s: %.100q … %.100q", c.command, r.Text, r.Text[len(r.Text)-100:])
		}
		if n := len([]rune(r.Text)); n < shell.MaxOutput || n > shell.MaxOutput+100 {
			t.Errorf("%s: %d characters", c.command, n)
		}
	}
}

func TestATimeOutEndsTheCommandAndReportsIt(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		start := time.Now()
		r := h.do(t, h.turn(t, trust, ""), "echo begun; sleep 300 & sleep 300", 1)
		if !r.IsError || !strings.HasPrefix(r.Text, "begun\n[The command was ended after 1 s") {
			t.Errorf("%s: %q", trust, r.Text)
		}
		if d := time.Since(start); d > 60*time.Second {
			t.Errorf("%s: took %s", trust, d)
		}
	}
}

func TestAbortEndsTheWholeTree(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		ctx, cancel := context.WithCancel(t.Context())
		var once sync.Once
		// What left the group, the session and its parent is found as well.
		r, err := h.try(ctx, h.turn(t, trust, ""), "setsid sh -c 'sleep 398765 & exec sleep 398765' & (setsid sleep 398765 &) ; echo begun; sleep 398765",
			func(string) { once.Do(cancel) })
		cancel()
		if err != nil || !r.IsError || !strings.Contains(r.Text, "the run was stopped") {
			t.Errorf("%s: %q %v", trust, r.Text, err)
		}
		gone(t, "398765")
	}
}

func TestBackgroundProcessesEndWithTheCall(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		r := h.do(t, h.turn(t, trust, ""), "(setsid sleep 387654 >/dev/null 2>&1 &); nohup sleep 387654 >/dev/null 2>&1 & echo done")
		if r.Text != "done\n" {
			t.Errorf("%s: %q", trust, r.Text)
		}
		gone(t, "387654")
	}
}

// gone waits until no process carries mark among its arguments.
func gone(t *testing.T, mark string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		found := ""
		for _, f := range files {
			if b, _ := os.ReadFile(f); strings.Contains(string(b), "\x00"+mark+"\x00") {
				found = f
			}
		}
		if found == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s still runs", found)
		}
	}
}

func TestACommandGetsNothingOfTheGatewaysEnvironment(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		r := h.do(t, h.turn(t, trust, ""), "env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo $HOME")
		names, home, _ := strings.Cut(r.Text, "\n")
		want, wantHome := "GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_KEY_1 GIT_CONFIG_KEY_2 GIT_CONFIG_VALUE_0 GIT_CONFIG_VALUE_1 GIT_CONFIG_VALUE_2 HOME LANG PATH PWD SHLVL TERM TMPDIR TZ _ ", "/tmp/home\n"
		if trust == core.Full {
			want, wantHome = strings.Replace(want, "TMPDIR ", "", 1), "/owner\n"
		}
		if names != want || home != wantHome {
			t.Errorf("%s: %q", trust, r.Text)
		}
	}
}

func TestWithoutASandboxThereIsNoShellBelowFull(t *testing.T) {
	h := newHouse(t, nil, sandbox.Limits{})
	for _, trust := range []core.Trust{core.Stranger, core.Sandboxed, core.Vault} {
		if _, err := h.try(t.Context(), h.turn(t, trust, ""), "true"); core.KindOf(err) != core.Denied {
			t.Errorf("%s: %v", trust, err)
		}
	}
	if err := tool.Check(h.shell.Tool()); err != nil {
		t.Error(err)
	}
}

func TestVaultSeesTheVaultWithoutWhatIsDenied(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	h.put(t, "Notes/a.md=a\n", "Notes/.env=KEY=1\n", "CLAUDE.md=rules\n", ".parachute/pairing.db", ".parachute/agents/x.md=agent\n",
		".claude/projects/p/s.jsonl", "Guests/7/own.md", "Guests/8/other.md", "id_rsa", "Chat/sessions.db")
	turn := h.turn(t, core.Vault, "Notes")
	for _, c := range []struct {
		command, want string
		failed        bool
	}{
		{"pwd | sed 's,.*/vault,vault,'; cat a.md", "vault/Notes\na\n", false},
		{"echo b > b.md; mv a.md c.md; cat c.md", "a\n", false},
		{"cat .env", "", true},
		{"cat ../CLAUDE.md", "rules\n", false},
		{"echo x > ../CLAUDE.md", "", true},
		{"rm ../CLAUDE.md || mv ../CLAUDE.md x", "", true},
		{"cat ../id_rsa", "", true},
		{"cat ../.parachute/pairing.db", "", true},
		{"cat ../.parachute/agents/x.md", "agent\n", false},
		{"echo x > ../.parachute/agents/x.md", "", true},
		{"cat ../.claude/projects/p/s.jsonl", "", true},
		{"cat ../Chat/sessions.db", "", true},
	} {
		r := h.do(t, turn, c.command)
		if r.IsError != c.failed || c.want != "" && r.Text != c.want {
			t.Errorf("%s: %q", c.command, r.Text)
		}
	}
	if !h.has("Notes/b.md") || !h.has("Notes/c.md") {
		t.Error("what was written is not there")
	}
}

func TestAGuestSeesTheOwnFolderTheReadListAndScratch(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	h.guest = []string{"Public/**"}
	h.put(t, "Public/a.md=public\n", "Public/.env", "Notes/secret.md", "Guests/8/other.md", ".claude/x", "Daily/d.md", "Chat/x.md")
	turn := h.turn(t, core.Sandboxed, "Notes") // not to be seen: the own folder instead
	for _, c := range []struct {
		command, want string
		failed        bool
	}{
		{"pwd | sed 's,.*/vault,vault,'", "vault/Guests/7\n", false},
		{"echo mine > x.md; cat x.md ../../Public/a.md", "mine\npublic\n", false},
		{"ls -A ../..; ls -A ..", "Guests\nPublic\n7\n", false},
		{"cat ../../Public/.env", "", true},
		{"echo x > ../../Public/a.md", "", true},
		{"touch ../../Public/new", "", true},
		{"touch ../new ../../new || true", "", false}, // at most in scratch
		{"echo scratch > /tmp/s; echo scratch > ~/h", "[No output]", false},
		{"cat /tmp/s ~/h", "scratch\nscratch\n", false}, // lasts for the run
	} {
		r := h.do(t, turn, c.command)
		if r.IsError != c.failed || c.want != "" && r.Text != c.want {
			t.Errorf("%s: %q", c.command, r.Text)
		}
	}
	if h.has("new") || h.has("Guests/new") || h.has("Public/new") {
		t.Error("a guest wrote outside of the own folder")
	}
	if err := h.shell.End(turn.Run); err != nil {
		t.Error(err)
	}
	if r := h.do(t, turn, "cat /tmp/s"); !r.IsError {
		t.Errorf("scratch outlives its run: %q", r.Text)
	}
}

// The schedule reads Daily/.agents while a command still runs, so what a command makes must
// never be there, not even until the command has ended.
func TestADailyAgentIsNotPlantedWhileACommandRuns(t *testing.T) {
	boxes := map[string]sandbox.Box{"bubblewrap": box(t)}
	if b := containers(t); b != nil {
		boxes["container"] = b
	}
	const plant = "mkdir -p Daily/.agents; echo EV''IL > Daily/.agents/evil.md; "
	for how, b := range boxes {
		for name, files := range map[string][]string{"no directory": nil, "without agents": {"Daily/today.md=mine\n"}, "with agents": {"Daily/.agents/mine.md=mine\n"}} {
			t.Run(how+", "+name, func(t *testing.T) {
				h := newHouse(t, b, sandbox.Limits{})
				h.put(t, files...)
				turn := h.turn(t, core.Vault, "")
				for _, command := range []string{
					plant,
					"mv Daily D; " + plant,
					"mv Daily/.agents Daily/x; rm -rf Daily/.agents; " + plant,
					"mkdir d d/.agents; echo EV''IL > d/.agents/evil.md; mv Daily gone; rm -rf Daily; mv -T d Daily; ",
					"ln -sfn /tmp Daily; mkdir -p /tmp/.agents; echo EV''IL > /tmp/.agents/evil.md; ",
				} {
					if r := h.do(t, turn, command+"cat Daily/.agents/evil.md"); strings.Contains(r.Text, "EVIL") || h.has("Daily/.agents/evil.md") {
						t.Errorf("%s: %q", command, r.Text)
					}
				}
				if r := h.do(t, turn, "echo note > Daily/note.md && mv Daily/note.md note.md && mv note.md Daily/n.md && cat Daily/n.md"); r.Text != "note\n" && strings.TrimSpace(r.Text) != "note" {
					t.Errorf("beside it: %q", r.Text)
				}
			})
		}
	}
}

func TestWhatCommandsAgentsIsMovedToTheTrash(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	h.put(t, "Project/CLAUDE.md=rules\n", "target.md=harmless\n")
	if err := os.Symlink("target.md", filepath.Join(h.vault.Path(), "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	turn := h.turn(t, core.Vault, "")
	for _, c := range []struct {
		command string
		goes    []string
		stays   []string
	}{
		{"echo evil > CLAUDE.md; mkdir -p a/.claude && echo evil > a/.claude/settings.json; echo {} > .mcp.json; echo fine > note.md",
			[]string{"CLAUDE.md", "a/.claude", ".mcp.json"}, []string{"note.md", "a"}},
		{"mkdir -p Journal && ln -s ../note.md Journal/.claude; mkfifo pipe", []string{"Journal/.claude", "pipe"}, []string{"Journal"}},
		{"mv Project Moved", []string{"Project"}, []string{"Moved/CLAUDE.md"}}, // unchanged
		{"mkdir x && chmod 0 x; mkdir y && touch y/AGENTS.md && chmod 0 y", []string{"y/AGENTS.md"}, []string{"x", "y"}},
		{"rm AGENTS.md; echo evil > AGENTS.md", nil, []string{"AGENTS.md"}},
		{"echo evil > target.md || rm -f target.md || true", nil, []string{"target.md"}},
		{"echo evil > CLAUDE.md; sleep 300", []string{"CLAUDE.md"}, nil},
	} {
		r := h.do(t, turn, c.command, 2)
		for _, name := range c.goes {
			if h.has(name) {
				t.Errorf("%s: %s is there", c.command, name)
			}
			if name != "Project" && !strings.Contains(r.Text, name+" was moved to the trash") {
				t.Errorf("%s: %q does not tell of %s", c.command, r.Text, name)
			}
		}
		for _, name := range c.stays {
			if !h.has(name) {
				t.Errorf("%s: %s is gone\n%s", c.command, name, r.Text)
			}
		}
	}
	if to, err := os.Readlink(filepath.Join(h.vault.Path(), "AGENTS.md")); err != nil || to != "target.md" {
		t.Errorf("the owner's link is now %q %v", to, err)
	}
	if b, _ := os.ReadFile(filepath.Join(h.vault.Path(), "target.md")); string(b) != "harmless\n" {
		t.Errorf("changed by way of a link: %q", b)
	}
}

// A device of the owner changes what commands agents while a command runs.
func TestWhatSomeoneElseWroteMeanwhileStays(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	h.put(t, "CLAUDE.md=old\n", "Project/AGENTS.md=old\n")
	turn := h.turn(t, core.Vault, "")
	for _, c := range []struct{ command, goes, stays string }{
		{"true", "", "CLAUDE.md Project/AGENTS.md agents/a.md"},
		{"echo evil > agents/b.md", "agents/b.md", "agents/a.md"},
		{"echo evil >> Project/AGENTS.md", "Project/AGENTS.md", "CLAUDE.md"},
		{"ln CLAUDE.md note.md", "CLAUDE.md", "note.md"},
		{"rm -f AGENTS.md; echo sent > AGENTS.md", "AGENTS.md", ""},
	} {
		arrive := sync.OnceFunc(func() {
			for _, name := range []string{"CLAUDE.md", "Project/AGENTS.md", "agents/a.md"} {
				h.put(t, "arriving=sent\n")
				to := filepath.Join(h.vault.Path(), name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(filepath.Join(h.vault.Path(), "arriving"), to)); err != nil {
					t.Error(err)
				}
				h.sent.Store(name, time.Now())
			}
			h.put(t, "go")
		})
		r := h.do(t, turn, "echo ready; until [ -e go ]; do sleep 0.05; done; rm go; "+c.command, func(string) { arrive() })
		for name := range strings.FieldsSeq(c.stays) {
			if !h.has(name) {
				t.Errorf("%s: %s is gone: %q", c.command, name, r.Text)
			}
		}
		if h.has(c.goes) && c.goes != "" {
			t.Errorf("%s: %s is there: %q", c.command, c.goes, r.Text)
		}
	}
}

func TestScratchThatACrashLeftIsDeleted(t *testing.T) {
	temp := t.TempDir()
	if err := os.MkdirAll(filepath.Join(temp, "gatehouse-scratch-1", "home", "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(temp, "other"), nil, 0o600), os.Chmod(filepath.Join(temp, "gatehouse-scratch-1", "home"), 0)); err != nil {
		t.Fatal(err)
	}
	s := shell.New(shell.Options{Stage: program(t), Clock: core.System{}, Temp: temp})
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) != 1 || filepath.Base(left[0]) != "other" {
		t.Error(left)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestBoundsThatNoOneSetOpenNothing(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	h.put(t, "Notes/a.md=a\n")
	for _, trust := range below {
		turn := h.turn(t, trust, "")
		turn.MayRead, turn.MayWrite = nil, nil
		r, err := h.try(t.Context(), turn, "cat Notes/a.md "+h.vault.Path()+"/Notes/a.md; echo x > "+h.vault.Path()+"/new")
		if err == nil && strings.Contains(r.Text, "a\n") || h.has("new") {
			t.Errorf("%s: %q", trust, r.Text)
		}
	}
}

func TestProgressShowsTheLastLine(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	var mu sync.Mutex
	var seen []string
	h.do(t, h.turn(t, core.Vault, ""), "echo one; echo two", func(s string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	})
	if len(seen) == 0 || seen[0] != "one" && seen[0] != "two" {
		t.Errorf("progress %q", seen)
	}
}

func TestBadInputIsRefusedInWords(t *testing.T) {
	h := newHouse(t, nil, sandbox.Limits{})
	turn := h.turn(t, core.Full, "")
	for _, raw := range []string{`{}`, `{"command":""}`, `{"command":"a\u0000b"}`, `{"command":"true","timeout":0}`, `{"command":"true","timeout":120000}`, `{"command":"true","cwd":"/"}`} {
		if _, err := h.shell.Tool().Touches(turn, json.RawMessage(raw)); core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// BenchmarkBash is what a call costs beyond the command's own work, with a
// thousand notes in the vault; p50 is printed in ms.
func BenchmarkBash(b *testing.B) {
	for _, trust := range []core.Trust{core.Full, core.Vault, core.Sandboxed} {
		b.Run(trust.String(), func(b *testing.B) {
			h := newHouse(b, box(b), sandbox.Limits{})
			for i := range 1000 {
				h.put(b, fmt.Sprintf("Notes/%d/%d.md", i/50, i))
			}
			turn := h.turn(b, trust, "")
			var each []time.Duration
			for b.Loop() {
				start := time.Now()
				h.do(b, turn, "true")
				each = append(each, time.Since(start))
			}
			slices.Sort(each)
			b.ReportMetric(float64(each[len(each)/2].Microseconds())/1000, "p50-ms")
		})
	}
}

func TestARenameBetweenMountsOfTheSandboxSaysWhatToDo(t *testing.T) {
	h := newHouse(t, box(t), sandbox.Limits{})
	h.put(t, "a.md=a", "b.md=b", "Daily/today.md=today")
	turn := h.turn(t, core.Vault, "")
	r := h.do(t, turn, `perl -e 'rename("a.md", "Daily/a.md") or die "$!\n"'`)
	if !r.IsError || !strings.Contains(r.Text, "copy it and delete the original, as mv does") || !h.has("a.md") {
		t.Errorf("%+v", r)
	}
	if r := h.do(t, turn, "mv b.md Daily/b.md"); r.IsError || !h.has("Daily/b.md") || h.has("b.md") {
		t.Errorf("%+v", r)
	}
	if r := h.do(t, turn, "echo cross-device link"); strings.Contains(r.Text, "mounts") {
		t.Errorf("a command that did not fail: %+v", r)
	}
}
