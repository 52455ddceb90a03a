//go:build linux

package shell_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/sandbox"
)

// An attempt is one way out of the sandbox. It is tried at every level below
// full that it is about, and with no guard at all, where it must succeed.
//
// In command, {V} is the vault, {B} the folder around it, {OWN} where the
// command starts (Notes, or the guest's own folder); the rest is in newPrey.
type attempt struct {
	name    string
	command string
	// won says whether it got through; nil: it printed the canary.
	won   func(p *prey, out string) bool
	guest bool // only a guest is kept from it
	root  bool // without a guard it needs root
}

func made(name string) func(*prey, string) bool {
	return func(p *prey, _ string) bool { return p.has(name) }
}

func holds(name, text string) func(*prey, string) bool {
	return func(p *prey, _ string) bool { return p.is(name, text) }
}

func says(text string) func(*prey, string) bool {
	return func(_ *prey, out string) bool { return strings.Contains(out, text) }
}

func left(p *prey, _ string) bool { return runs(p.names.Replace("{MARK}")) }

var attempts = []attempt{
	// Reading what is denied, by name.
	{name: "cat .env", command: "cat {V}/.env"},
	{name: "cat a .env elsewhere", command: "cat {V}/Notes/.env.local"},
	{name: "cat a .env of one's own folder", command: "cat {V}/Guests/7/.env"},
	{name: "cat a private key", command: "cat {V}/id_rsa"},
	{name: "cat the bots file", command: "cat {V}/.parachute/bots.yaml"},
	{name: "cat the gateway's files in .parachute", command: "cat {V}/.parachute/gatehouse.db"},
	{name: "cat other people's sessions", command: "cat {V}/.claude/projects/*/*.jsonl"},
	{name: "cat the database", command: "cat {V}/Chat/sessions.db"},
	{name: "cat the database's log", command: "cat {V}/Chat/sessions.db-wal"},
	{name: "cat .ssh in the vault", command: "cat {V}/Notes/.ssh/config"},
	{name: "cat a copy of .env", command: "cp {V}/.env x; cat x"},
	{name: "tar of everything", command: "tar cf - {V} 2>/dev/null | grep -a -o 'CANARY .env' | head -1"},
	{name: "find -exec", command: "find {V} -name '.env*' -exec cat {} +"},
	{name: "move .env to another name", command: "mv {V}/.env x.txt; cat x.txt"},
	{name: "move the folder of .env", command: "mkdir {OWN}/../q; mv {V}/Notes/.ssh {OWN}/../q/open; cat {OWN}/../q/open/config"},
	{name: "unmount what hides", command: "umount {V}/.env {V}/Notes/.ssh; cat {V}/.env {V}/Notes/.ssh/config"},
	// The owner's and other people's files.
	{name: "cat the owner's notes", command: "cat {V}/Notes/diary.md", guest: true},
	{name: "cat another guest's folder", command: "cat {V}/Guests/8/diary.md", guest: true},
	{name: "cat Daily", command: "cat {V}/Daily/today.md", guest: true},
	{name: "cat the owner's CLAUDE.md", command: "cat {V}/CLAUDE.md", guest: true},
	{name: "cat .mcp.json", command: "cat {V}/.mcp.json", guest: true},
	{name: "list the vault", command: "ls {V} {V}/Notes", won: says("diary.md"), guest: true},
	{name: "write to the owner's notes", command: "echo EVIL > {V}/Notes/new.md", won: made("Notes/new.md"), guest: true},
	{name: "write to another guest's folder", command: "echo EVIL > {V}/Guests/8/new.md", won: made("Guests/8/new.md"), guest: true},
	{name: "write to what may be read", command: "echo EVIL > {V}/Public/a.md", won: holds("Public/a.md", "EVIL"), guest: true},
	{name: "make a folder beside one's own", command: "mkdir -p {V}/Guests/9/x", won: made("Guests/9"), guest: true},
	{name: "delete the owner's notes", command: "rm -rf {V}/Notes/diary.md", won: func(p *prey, _ string) bool { return !p.has("Notes/diary.md") }, guest: true},
	// Outside of the vault.
	{name: "cat a file of the host", command: "cat {B}/outside.txt"},
	{name: "cat the owner's ssh key", command: "cat {B}/home/.ssh/id_ed25519 || cat ~/.ssh/id_ed25519"},
	{name: "cat a token's file", command: "cat {B}/secrets/telegram.token"},
	{name: "cat the gateway's environment file", command: "cat {B}/gatehouse.env"},
	{name: "up with ..", command: "cat ../../outside.txt ../../../outside.txt"},
	{name: "up with .. from a folder made and moved", command: "mkdir -p d/e && cd d/e && mv {OWN}/d {OWN}/f; cat ../../../../outside.txt ../../../../../outside.txt"},
	{name: "a link to a file", command: "ln -s {B}/outside.txt l && cat l"},
	{name: "a link to a folder", command: "ln -s {B} l && cat l/outside.txt"},
	{name: "a hard link to a file of the host", command: "ln {B}/outside.txt l && cat l"},
	{name: "a hard link to .env", command: "ln {V}/.env l && cat l"},
	{name: "write a file of the host", command: "echo EVIL > {B}/outside.txt", won: holds("../outside.txt", "EVIL")},
	{name: "write through a link", command: "ln -s {B}/outside.txt l && echo EVIL > l", won: holds("../outside.txt", "EVIL")},
	{name: "make a file on the host", command: "echo EVIL > {B}/new", won: made("../new")},
	{name: "make a file through a linked folder", command: "ln -s {B} l && echo EVIL > l/new", won: made("../new")},
	{name: "the host's people", command: "cat /etc/passwd", won: says("daemon:")},
	{name: "the host's kernel settings of groups", command: "ls /sys/fs/cgroup /sys/kernel", won: says("mm")},
	{name: "the host's devices", command: "ls /dev | grep -v -x -E 'null|zero|full|random|urandom|tty|pts|shm|mqueue|ptmx|std(in|out|err)|fd|core|console' && echo CANA''RY"},
	{name: "overwrite the gateway's program", command: "for f in {B}/program /.gatehouse; do rm -f $f; echo EVIL > $f; done", won: holds("../program", "EVIL")},
	{name: "overwrite the stage inside", command: "rm -f /.gatehouse; cp {B}/outside.txt /.gatehouse; cat {B}/outside.txt"},
	// /proc.
	{name: "/proc/self/root", command: "cat /proc/self/root{B}/outside.txt"},
	{name: "/proc/1/root", command: "cat /proc/1/root{B}/outside.txt /proc/$PPID/root{B}/outside.txt"},
	{name: "the gateway's root", command: "cat /proc/{PID}/root{B}/outside.txt"},
	{name: "the gateway's working directory", command: "cat /proc/{VICTIM}/cwd/shell.go", won: says("package shell")},
	{name: "somebody's environment", command: "tr '\\0' '\\n' < /proc/{VICTIM}/environ"},
	{name: "everybody's environment", command: "cat /proc/[0-9]*/environ | tr '\\0' '\\n'"},
	{name: "one's own environment", command: "env; cat /proc/self/environ | tr '\\0' '\\n'"},
	{name: "somebody's open files", command: "cat /proc/{VICTIM}/fd/3"},
	{name: "everybody's open files", command: "for f in /proc/[0-9]*/fd/3; do test -f $f && head -c 1000 $f; done"},
	{name: "somebody's memory", command: "./attack mem {VICTIM}"},
	{name: "somebody's memory by call", command: "./attack readv {VICTIM}"},
	{name: "somebody's arguments", command: "cat /proc/{VICTIM}/cmdline | tr '\\0' ' '", won: says("sleep 600")},
	{name: "inherited files", command: "cat <&{FD}"},
	{name: "files of the sandbox's first process", command: "cat /proc/1/fd/{FD} /proc/self/fd/{FD}"},
	{name: "kernel settings", command: "v=$(cat /proc/sys/vm/swappiness) && echo $v > /proc/sys/vm/swappiness && echo CANA''RY", root: true},
	{name: "who is killed first", command: "echo 500 > /proc/{VICTIM}/oom_score_adj && echo CANA''RY"},
	// Other processes.
	{name: "kill a process of the host", command: "kill -9 {VICTIM}; for i in 1 2 3 4 5; do kill -0 {VICTIM} 2>/dev/null || break; sleep 0.05; done", won: dead},
	{name: "signal the gateway", command: "kill -0 {PID} && echo CANA''RY", won: nil},
	{name: "trace a process of the host", command: "./attack ptrace {VICTIM}"},
	{name: "slow a process of the host", command: "renice -n 5 -p {VICTIM} >/dev/null && echo CANA''RY"},
	{name: "leave a process behind", command: "setsid sleep {MARK} >/dev/null 2>&1 & sleep 0.2", won: left},
	{name: "leave a process behind, orphaned", command: "(nohup sleep {MARK} >/dev/null 2>&1 &) ; sleep 0.2", won: left},
	{name: "leave a process behind in a session of its own", command: "./attack daemon {MARK} >/dev/null; sleep 0.2", won: left},
	{name: "shared memory of the host", command: "./attack shm {SHM}"},
	{name: "keys of the gateway's user", command: "./attack key {KEY}"},
	{name: "type into a terminal", command: "./attack tiocsti", root: true},
	// Network.
	{name: "TCP to the host", command: "cat < /dev/tcp/127.0.0.1/{TCP}"},
	{name: "TCP by a program", command: "./attack dial tcp 127.0.0.1:{TCP}"},
	{name: "TCP by IPv6", command: "./attack dial tcp [::ffff:127.0.0.1]:{TCP}"},
	{name: "UDP to the host", command: "echo hello > /dev/udp/127.0.0.1/{UDP}; sleep 0.2", won: heard},
	{name: "a name server", command: "./attack udp 127.0.0.1:{UDP} query; sleep 0.2", won: heard},
	{name: "the gateway's socket", command: "./attack dial unix {SOCKET}"},
	{name: "a socket of the owner's in reach", command: "./attack dial unix {AGENT}"},
	{name: "a socket of the host", command: "./attack dial unix {DOCKER}"},
	{name: "an abstract socket", command: "./attack dial unix {ABSTRACT}"},
	{name: "a socket that knows no namespaces", command: "./attack vsock"},
	// What commands the gateway or agents.
	{name: "write CLAUDE.md", command: "echo EVIL >> {V}/CLAUDE.md", won: holds("CLAUDE.md", "EVIL")},
	{name: "replace CLAUDE.md", command: "echo EVIL > x; mv x {V}/CLAUDE.md", won: holds("CLAUDE.md", "EVIL")},
	{name: "CLAUDE.md by a link", command: "ln -s {V}/CLAUDE.md l; echo EVIL >> l", won: holds("CLAUDE.md", "EVIL")},
	{name: "CLAUDE.md by a hard link", command: "ln {V}/CLAUDE.md l; echo EVIL >> l", won: holds("CLAUDE.md", "EVIL")},
	{name: "make CLAUDE.md", command: "echo EVIL > {OWN}/CLAUDE.md", won: inOwn("CLAUDE.md")},
	{name: "make claude.md as a link", command: "echo EVIL > x; ln -s x {OWN}/CLAUDE.md", won: inOwn("CLAUDE.md")},
	{name: "make AGENTS.md and fail", command: "mkdir n; echo EVIL > n/AGENTS.md; kill -9 $$", won: inOwn("n/AGENTS.md")},
	{name: "make .mcp.json", command: "echo '{}' > {OWN}/.mcp.json", won: inOwn(".mcp.json")},
	{name: "write .mcp.json", command: "echo EVIL > {V}/.mcp.json", won: holds(".mcp.json", "EVIL")},
	{name: "make .claude by a rename", command: "mkdir t; echo EVIL > t/settings.json; mv t n; mkdir m; mv n m/.claude", won: inOwn("m/.claude/settings.json")},
	{name: "write settings in .claude", command: "echo EVIL > {V}/Notes/.claude/settings.json", won: holds("Notes/.claude/settings.json", "EVIL")},
	{name: "move .claude away", command: "mv {V}/Notes/.claude {V}/Notes/c && mkdir {V}/Notes/.claude && echo EVIL > {V}/Notes/.claude/settings.json", won: holds("Notes/.claude/settings.json", "EVIL")},
	{name: "write an agent", command: "echo EVIL > {V}/.parachute/agents/a.md", won: holds(".parachute/agents/a.md", "EVIL")},
	{name: "make an agent", command: "echo EVIL > {V}/.parachute/agents/evil.md", won: made(".parachute/agents/evil.md")},
	{name: "write .git/config", command: "echo EVIL > {V}/Notes/.git/config", won: holds("Notes/.git/config", "EVIL")},
	{name: "make a git hook", command: "echo EVIL > {V}/Notes/.git/hooks/post-commit", won: made("Notes/.git/hooks/post-commit")},
	{name: "make a repository with hooks", command: "mkdir -p {OWN}/r/.git/hooks && echo EVIL > {OWN}/r/.git/hooks/pre-commit", won: inOwn("r/.git/hooks/pre-commit")},
	{name: "rewrite AGENTS.md of one's own folder", command: "echo EVIL > {V}/Guests/7/AGENTS.md", won: holds("Guests/7/AGENTS.md", "EVIL")},
	{name: "a pipe on which readers wait", command: "mkfifo {OWN}/notes.md", won: inOwn("notes.md")},
	{name: "plant a file when the command is over", command: "(while :; do echo EVIL > {OWN}/CLAUDE.md; done) >/dev/null 2>&1 & sleep 0.2; exit 0", won: func(p *prey, _ string) bool { return inOwn("CLAUDE.md")(p, "") }},
	{name: "hide a planted file behind rights", command: "mkdir n; echo EVIL > n/CLAUDE.md; chmod 0 n", won: func(p *prey, _ string) bool {
		_ = os.Chmod(filepath.Join(p.own, "n"), 0o700)
		return inOwn("n/CLAUDE.md")(p, "")
	}},
	// Namespaces, mounts, rights.
	{name: "a user namespace", command: "unshare -U true && echo CANA''RY"},
	{name: "a mount in a new namespace", command: "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo CANA''RY'"},
	{name: "bubblewrap again", command: "bwrap --dev-bind / / --unshare-user true && echo CANA''RY"},
	{name: "chroot", command: "unshare -r chroot / true && echo CANA''RY"},
	{name: "the namespaces of another process", command: "nsenter -t {VICTIM} -m -p cat {B}/outside.txt", root: true},
	{name: "a device node", command: "mknod {OWN}/null c 1 3", won: inOwn("null"), root: true},
	{name: "files by number", command: "./attack handle", root: true},
	{name: "a program with its owner's rights", command: "./attack setid {OWN}/p"},
	{name: "become root", command: "test $(id -u) = 0 && echo CANA''RY", root: true},
	{name: "the kernel's log", command: "dmesg | head -1 | grep -q . && echo CANA''RY", root: true},
	{name: "the host's name", command: "test $(hostname) != sandbox && echo CANA''RY"},
	// More than its share.
	{name: "many processes", command: "for i in $(seq 300); do sleep 20 & done 2>/dev/null; sleep 3; [ $(jobs -rp | wc -l) -gt 250 ] && echo CANA''RY; kill $(jobs -p) 2>/dev/null; true"},
	{name: "a bomb of forks", command: "f() { [ $1 -gt 7 ] && { echo x >> count; sleep 3; return; }; f $(($1+1)) & f $(($1+1)) & wait; }; f 0 2>/dev/null; [ $(wc -l < count) -gt 200 ] && echo CANA''RY"},
	{name: "many threads", command: "./attack threads 300"},
	{name: "much memory", command: "./attack memory 400"},
	{name: "much memory in many processes", command: "for i in 1 2 3 4; do ./attack memory 96 > m$i & done; wait; [ $(cat m? | grep -c CANA) = 4 ] && echo CANA''RY"},
	{name: "memory as files", command: "dd if=/dev/zero of=/dev/shm/gatehouse-test-{MARK} bs=1M count=128 2>/dev/null && echo CANA''RY; rm -f /dev/shm/gatehouse-test-{MARK}"},
	{name: "one huge file", command: "dd if=/dev/zero of={OWN}/big bs=1M count=64 2>/dev/null && echo CANA''RY; rm -f {OWN}/big"},
	{name: "a huge file without writing", command: "fallocate -l 1G {OWN}/big && echo CANA''RY; rm -f {OWN}/big"},
	{name: "many files", command: "for i in $(seq 48); do dd if=/dev/zero of={OWN}/big$i bs=1M count=24 2>/dev/null; done; sleep 3; [ $(ls {OWN}/big* | wc -l) = 48 ] && echo CANA''RY; rm -f {OWN}/big*"},
	{name: "much time of the processor", command: "./attack spin 2"},
}

func dead(p *prey, _ string) bool { return syscall.Kill(p.victim.Process.Pid, 0) != nil }

func heard(p *prey, _ string) bool { return p.heard.Load() }

func inOwn(name string) func(*prey, string) bool {
	return func(p *prey, _ string) bool {
		_, err := os.Lstat(filepath.Join(p.own, name))
		return err == nil
	}
}

func (a attempt) got(p *prey, out string) bool {
	if a.won != nil {
		return a.won(p, out)
	}
	return strings.Contains(out, canary)
}

// backends are those that isolate here. Under CI=true there must be bubblewrap.
// A missing container engine is reported.
func backends(t *testing.T) []sandbox.Box {
	t.Helper()
	boxes := []sandbox.Box{box(t)}
	if b := containers(t); b != nil {
		boxes = append(boxes, b)
	}
	return boxes
}

// counts are attempts, and those that succeeded, by back end and level.
type counts struct {
	mu          sync.Mutex
	tried, lost map[string]int
}

// add counts an attempt, or (lost is 1) that it succeeded.
func (c *counts) add(key string, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tried == nil {
		c.tried, c.lost = map[string]int{}, map[string]int{}
	}
	c.tried[key] += 1 - lost
	c.lost[key] += lost
}

// print says how many attempts were made; a run over many packages does not
// show that, so it is also appended to the file that GATEHOUSE_TEST_REPORT names.
func (c *counts) print() {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(c.tried)) {
		fmt.Fprintf(&out, "escapes: %s: %d attempts, %d succeeded\n", key, c.tried[key], c.lost[key])
	}
	fmt.Print(out.String())
	if path := os.Getenv("GATEHOUSE_TEST_REPORT"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(out.String())
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			fmt.Println(err)
		}
	}
}

func TestNoWayOutOfTheSandbox(t *testing.T) {
	boxes := backends(t)
	var c counts
	t.Cleanup(c.print) // once the parallel ones are over
	for _, a := range attempts {
		proved := a.root && os.Geteuid() != 0
		for _, trust := range below {
			if a.guest && trust != core.Sandboxed {
				continue
			}
			prove := !proved
			proved = true
			t.Run(trust.String()+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				a.try(t, boxes, trust, prove, &c)
			})
		}
	}
}

// try runs an attempt at one level: with no guard when it is to be proved that
// it tests something, and in every box.
func (a attempt) try(t *testing.T, boxes []sandbox.Box, trust core.Trust, prove bool, c *counts) {
	guest := trust == core.Sandboxed
	if prove {
		p := newPrey(t, nil, guest)
		out := p.raw(t, a.command)
		// On a busy machine what was left behind takes a while to begin.
		won := a.got(p, out)
		for end := time.Now().Add(time.Minute); !won && a.won != nil && time.Now().Before(end); won = a.got(p, out) {
			<-time.After(10 * time.Millisecond)
		}
		if !won {
			t.Errorf("does not succeed without a guard, so it shows nothing: %s\n%s", p.names.Replace(a.command), out)
		}
	}
	for _, b := range boxes {
		key := b.Name() + ", " + trust.String()
		c.add(key, 0)
		p := newPrey(t, b, guest)
		out := p.guarded(t, trust, a.command)
		if strings.Contains(out, "nothing is started") {
			t.Errorf("%s did not run the command, so it shows nothing: %s\n%s", key, p.names.Replace(a.command), out)
		}
		if a.got(p, out) {
			c.add(key, 1)
			t.Errorf("ESCAPED from %s: %s\n%s", key, p.names.Replace(a.command), out)
		}
	}
}

// TestThereAreEnoughAttempts holds the number that the documents name.
func TestThereAreEnoughAttempts(t *testing.T) {
	atVault := 0
	for _, a := range attempts {
		if !a.guest {
			atVault++
		}
	}
	if atVault < 60 {
		t.Errorf("only %d attempts at the vault level", atVault)
	}
}
