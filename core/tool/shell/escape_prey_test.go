//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/sandbox"
)

// canary stands in everything that nobody below full may get at.
const canary = "CANARY"

// Limits of the escapes: small, so that what breaks them hurts nobody.
var escapeLimits = sandbox.Limits{Memory: 192 << 20, Processes: 96, FileSize: 32 << 20, Disk: 192 << 20, CPU: time.Second}

// A prey is a vault, a host around it, and what is to be got at.
type prey struct {
	*house
	base   string // of the host, around the vault
	own    string // where commands start
	victim *exec.Cmd
	heard  atomic.Bool // a datagram came out
	names  *strings.Replacer
}

// marks tell the processes of one prey from those of another.
var marks = func() *atomic.Int64 {
	n := new(atomic.Int64)
	n.Store(int64(os.Getpid()) * 10_000)
	return n
}()

// built holds testdata/attack, built once; TestMain removes it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func removeBuilt() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// attackProgram is the path of testdata/attack.
func attackProgram() (string, error) {
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gh-attack"); built.err != nil {
			return
		}
		cmd := coretest.GoBuild("-o", filepath.Join(built.dir, "attack"), "./testdata/attack")
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	return filepath.Join(built.dir, "attack"), built.err
}

// secrets are files of the vault and of the host (after "../"), each holding the canary.
var secrets = []string{
	".env", "Notes/.env.local", "id_rsa", ".parachute/bots.yaml", ".parachute/gatehouse.db", ".claude/projects/-x/s.jsonl",
	"Chat/sessions.db", "Chat/sessions.db-wal", "Notes/.ssh/config", "Guests/7/.env",
	"../outside.txt", "../home/.ssh/id_ed25519", "../secrets/telegram.token", "../gatehouse.env",
}

// private are files that the vault level sees, and a guest must not.
var private = []string{"Notes/diary.md", "Guests/8/diary.md", "Daily/today.md", "Projects/plan.md", "CLAUDE.md", ".mcp.json"}

// commanding are files whose content commands the gateway or agents.
var commanding = []string{"Notes/.claude/settings.json", "Notes/.git/config", "Notes/.git/hooks/pre-commit", ".parachute/agents/a.md", "Guests/7/AGENTS.md"}

func newPrey(t *testing.T, box sandbox.Box, guest bool) *prey {
	t.Helper()
	p := &prey{house: newHouse(t, box, escapeLimits)}
	p.guest = []string{"Public/**"}
	p.base = filepath.Dir(p.vault.Path())
	for _, name := range append(append([]string{}, secrets...), private...) {
		p.put(t, name+"="+canary+" "+filepath.Base(name)+"\n")
	}
	p.put(t, append([]string{"Public/a.md=public\n", "Guests/7/mine.md=mine\n", "gateway=x\n"}, commanding...)...)
	p.own = filepath.Join(p.vault.Path(), "Notes")
	if guest {
		p.own = filepath.Join(p.vault.Path(), "Guests/7")
	}
	p.put(t, "../program=old\n")
	attack, err := attackProgram()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, attack, filepath.Join(p.own, "attack"))
	p.startVictim(t)
	p.listen(t)
	return p
}

// copyFile has another process write the copy: a program that this one had open
// for writing, when another test forked, could not be started ("text file busy").
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// startVictim starts a process of the host with secrets in its environment and
// in an open file.
func (p *prey) startVictim(t *testing.T) {
	t.Helper()
	f, err := os.Open(filepath.Join(p.base, "outside.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.victim = exec.Command("sleep", "600")
	p.victim.Env = []string{"SECRET=" + canary}
	p.victim.ExtraFiles = []*os.File{f}
	if err := p.victim.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.victim.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(p.victim.Process.Pid, syscall.SIGKILL)
		<-done
	})
}

// listen opens every kind of door of the host that a command might knock at.
func (p *prey) listen(t *testing.T) {
	t.Helper()
	abstract := fmt.Sprintf("@gatehouse-test-%d-%s", os.Getpid(), filepath.Base(p.base))
	open := map[string]string{}
	for name, at := range map[string][2]string{
		"{TCP}": {"tcp", "127.0.0.1:0"}, "{ABSTRACT}": {"unix", abstract},
		"{SOCKET}": {"unix", short(t, p.vault.Path(), ".parachute/s")}, "{AGENT}": {"unix", short(t, p.own, "agent.s")}, "{DOCKER}": {"unix", short(t, p.base, "d.s")},
	} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_, _ = c.Write([]byte(canary + "\n"))
				_ = c.Close()
			}
		}()
		open[name] = l.Addr().String()
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		if _, _, err := u.ReadFrom(make([]byte, 512)); err == nil {
			p.heard.Store(true)
		}
	}()
	_, tcp, _ := net.SplitHostPort(open["{TCP}"])
	_, port, _ := net.SplitHostPort(u.LocalAddr().String())
	fd, id, key := p.inherited(t), p.segment(t), p.key(t)
	p.names = strings.NewReplacer("{V}", p.vault.Path(), "{B}", p.base, "{OWN}", p.own, "{TCP}", tcp, "{UDP}", port,
		"{ABSTRACT}", open["{ABSTRACT}"], "{SOCKET}", open["{SOCKET}"], "{AGENT}", open["{AGENT}"], "{DOCKER}", open["{DOCKER}"],
		"{PID}", strconv.Itoa(os.Getpid()), "{VICTIM}", strconv.Itoa(p.victim.Process.Pid), "{FD}", fd, "{SHM}", id, "{KEY}", key, "{MARK}", strconv.FormatInt(marks.Add(1), 10))
}

// short is a path of a socket; its length is bounded to 107 bytes.
func short(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if len(path) > 107 {
		t.Fatalf("path of a socket is too long: %s", path)
	}
	return path
}

// inherited is the number of an open file that children get, as a careless
// library might leave one.
func (p *prey) inherited(t *testing.T) string {
	t.Helper()
	fd, err := unix.Open(filepath.Join(p.base, "outside.txt"), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return strconv.Itoa(fd)
}

// segment is shared memory of the host.
func (p *prey) segment(t *testing.T) string {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(b, canary)
	if err := unix.SysvShmDetach(b); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(id)
}

// key is a key in the keyring of the gateway's user; "" where the kernel has none.
func (p *prey) key(t *testing.T) string {
	t.Helper()
	id, err := unix.AddKey("user", "gatehouse-"+p.base, []byte(canary), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return ""
	}
	_ = unix.KeyctlSetperm(id, 0x3f3f0000)
	t.Cleanup(func() {
		_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	})
	return strconv.Itoa(id)
}

// raw runs a command with no guard at all, as the gateway's user, and says what
// it printed.
func (p *prey) raw(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", p.names.Replace(command))
	cmd.Dir, cmd.WaitDelay = p.own, time.Second
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + p.base + "/home", "GATEHOUSE_TOKEN=" + canary}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if cmd.Process != nil {
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // what it left in its group
	}
	return out.String()
}

// guarded runs it through the Bash tool.
func (p *prey) guarded(t *testing.T, trust core.Trust, command string) string {
	t.Helper()
	rel, err := filepath.Rel(p.vault.Path(), p.own)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.try(t.Context(), p.turn(t, trust, rel), p.names.Replace(command), 30)
	if err != nil {
		return "refused: " + core.TextOf(err)
	}
	return r.Text
}

// is reports whether a file of the host (relative to the vault) holds text.
func (p *prey) is(name, text string) bool {
	b, err := os.ReadFile(filepath.Join(p.vault.Path(), name))
	return err == nil && strings.Contains(string(b), text)
}

// runs reports whether a process carries mark among its arguments, and ends it.
func runs(mark string) bool {
	found := false
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if strings.HasPrefix(string(b), "sleep\x00"+mark+"\x00") || strings.HasPrefix(string(b), "/bin/sleep\x00"+mark+"\x00") {
			found = true
			if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // ours: only these tests use the mark
			}
		}
	}
	return found
}
