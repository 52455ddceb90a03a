package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox/measure"
)

// secret is what no program behind a veil may read.
const secret = "the-gateways-own-secret"

// An estate is a home with hidden and open files in it, and a veil over it.
type estate struct {
	dir  string
	veil *Veil
}

func (e estate) at(name string) string { return filepath.Join(e.dir, name) }

func newEstate(t *testing.T) estate {
	t.Helper()
	dir, err := os.MkdirTemp("", "veil-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := estate{dir: dir}
	for _, name := range []string{"vault/Chat/sessions.db", "vault/Chat/sessions.db-wal", "vault/.parachute/lock", "vault/.parachute/trash/note", "run/key", "env"} {
		e.write(t, name, secret)
	}
	for _, name := range []string{"vault/note", "vault/Chat/talk.jsonl", "vault/.parachute/agents/a.md"} {
		e.write(t, name, "open\n")
	}
	e.veil = veilOver(t, func() Cover {
		return Cover{
			Hidden: []string{e.at("vault/Chat/sessions.db"), e.at("vault/Chat/sessions.db-wal"), e.at("vault/Chat/sessions.db-shm"), e.at("vault/.parachute"), e.at("run"), e.at("env")},
			Open:   []string{e.at("vault/.parachute/agents"), e.at("vault/.parachute/skills")},
		}
	})
	return e
}

func (e estate) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(e.at(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.at(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// veilOver is the veil of this machine. Where there is none the test is skipped,
// and fails under CI=true.
func veilOver(t *testing.T, cover func() Cover) *Veil {
	t.Helper()
	v, why := TryVeil(Auto).Open(cover)
	if v == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return v
}

// run runs a shell command behind the veil.
func (e estate) run(t *testing.T, command string) string {
	t.Helper()
	out, err := e.try(t, e.dir, "/bin/bash", "-c", command)
	if err != nil {
		return out + err.Error()
	}
	return out
}

func (e estate) try(t *testing.T, dir string, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd, err := e.veil.Tree(ctx, "", dir, []string{"PATH=/usr/sbin:/usr/bin:/bin", "HOME=" + e.dir}, argv...)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Start()
	Release(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return out.String(), err
}

func TestBehindTheVeilEverythingElseIsTheUsersOwn(t *testing.T) {
	e := newEstate(t)
	for command, want := range map[string]string{
		"cat vault/note vault/Chat/talk.jsonl vault/.parachute/agents/a.md":                              "open\nopen\nopen\n",
		"echo new > vault/.parachute/agents/b.md; cat vault/.parachute/agents/b.md; ls vault/.parachute": "new\nagents\n",
		"echo new > vault/new; ls vault; rm vault/new":                                                   "Chat\nnew\nnote\n",
		"touch mine; stat -c %u mine; id -u":                                                             fmt.Sprintf("%d\n%d\n", os.Getuid(), os.Getuid()),
		"echo fine > /tmp/veil-$$; cat /tmp/veil-$$; rm /tmp/veil-$$":                                    "fine\n",
		"echo x > /dev/null; head -c 2 /dev/zero | wc -c; ls -d /dev/shm":                                "2\n/dev/shm\n",
		"echo $HOME": e.dir + "\n",
		"(exit 7); echo $?; (bash -c 'kill -9 $$'; echo $?) 2>/dev/null":                     "7\n137\n",
		"readlink /proc/self/ns/net":                                                         link(t, "/proc/self/ns/net"),
		"ls /proc/self/fd | wc -l":                                                           "4\n", // 0, 1, 2 and the folder itself
		"grep -c '^NoNewPrivs:.1' /proc/self/status":                                         "1\n",
		"printenv | cut -d= -f1 | grep -v '^_$\\|^PWD$\\|^SHLVL$\\|^OLDPWD$' | sort | xargs": "HOME PATH\n",
	} {
		if out := e.run(t, command); out != want {
			t.Errorf("%s: %q, want %q", command, out, want)
		}
	}
}

func link(t *testing.T, path string) string {
	t.Helper()
	to, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return to + "\n"
}

// Every attempt names the hidden files or this process. None may print the
// secret, and none may end this process or change a file.
func TestNothingBehindTheVeilReachesTheGatewaysOwnFiles(t *testing.T) {
	e := newEstate(t)
	gateway := strconv.Itoa(os.Getpid())
	t.Setenv("VEIL_TEST_TOKEN", secret)
	if err := os.Symlink(e.at("vault/Chat/sessions.db"), e.at("link")); err != nil {
		t.Fatal(err)
	}
	uncovered := estate{dir: e.dir} // the attempts are worth something: without a veil they succeed
	for _, command := range []string{"cat env", "cat link", "cat /proc/" + gateway + "/root" + e.dir + "/env"} {
		cmd, err := uncovered.veil.Tree(t.Context(), self(t), e.dir, []string{"PATH=/usr/bin:/bin"}, "/bin/sh", "-c", command)
		if err != nil {
			t.Fatal(err)
		}
		if out := said(t, cmd); out != secret {
			t.Errorf("without a veil %s: %q", command, out)
		}
	}
	for _, command := range []string{
		"cat vault/Chat/sessions.db vault/Chat/sessions.db-wal env run/key vault/.parachute/lock vault/.parachute/trash/*",
		"cat link", "cat /proc/self/root" + e.dir + "/env", "cat /proc/1/root" + e.dir + "/env", "cat /proc/self/cwd/env",
		"cp -r vault copy; cat copy/Chat/* copy/.parachute/*/* 2>/dev/null; rm -rf copy", "tar c vault | strings",
		"ln vault/Chat/sessions.db got; cat got", "mv vault/Chat/sessions.db got; cat got", "mv run got; cat got/key",
		"mv vault/Chat vault/Other; cat vault/Other/sessions.db; mv vault/Other vault/Chat",
		"rm -f env; cat env", "umount env; cat env", "umount -l run; cat run/key", "umount -R / 2>/dev/null; cat env", "mount --bind . /mnt; cat /mnt/env",
		"unshare -m cat env", "unshare -Ur sh -c 'umount env; cat env'", "unshare -Urm sh -c 'umount env; mount --bind . /mnt; cat /mnt/env env'",
		"nsenter -t 1 -m cat env", "nsenter -m/proc/1/ns/mnt cat env", "chroot /proc/1/root cat " + e.dir + "/env",
		"for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; cat $p/root" + e.dir + "/env $p/cwd/env; timeout 1 cat $p/fd/*; done </dev/null 2>/dev/null",
		"cat /proc/" + gateway + "/environ", "strings /proc/" + gateway + "/mem", "cat /proc/" + gateway + "/root" + e.dir + "/env",
		"kill -9 " + gateway + "; kill -9 -1", "kill -STOP $PPID; kill -9 $PPID", "gdb -p " + gateway + " -batch", "strace -p " + gateway,
		"mknod got b 7 0; cat got", "for d in /dev/[snvx]d* /dev/[svx]d? /dev/loop0 /dev/dm-* /dev/mem /dev/port; do test \"$(head -c 1 $d 2>/dev/null | wc -c)\" = 1 && echo $d " + secret + "; done",
		"echo 1 > /proc/sysrq-trigger", "chmod 777 env run; chown 1 env; cat env run/key", "echo broken > env; echo broken > vault/Chat/sessions.db; truncate -s0 run/key",
		"perl -e 'syscall(304, -100, 0, 0) == -1 and print $!'", "setpriv --reuid 65534 cat env",
		"debugfs -R 'cat " + e.dir + "/env' $(findmnt -no SOURCE -T .)", "cat /sys/kernel/debug/* /proc/kcore | head -c 100 | strings",
	} {
		if out := e.run(t, "("+command+") 2>&1"); strings.Contains(out, secret) {
			t.Errorf("%s:\n%s", command, out)
		}
	}
	for _, name := range []string{"vault/Chat/sessions.db", "vault/Chat/sessions.db-wal", "vault/.parachute/lock", "vault/.parachute/trash/note", "run/key", "env"} {
		if text, err := os.ReadFile(e.at(name)); err != nil || string(text) != secret {
			t.Errorf("%s was changed: %q, %v", name, text, err)
		}
	}
}

// The folder that a hidden file is in cannot be renamed away from its mask.
func TestAFolderThatWasRenamedUncoversNothing(t *testing.T) {
	e := newEstate(t)
	for _, steps := range []struct{ do, undo string }{
		{"mv vault/Chat vault/Other", "rm -rf vault/Chat; mv vault/Other vault/Chat"},
		{"mv vault/Chat vault/Other; mkdir vault/Chat; echo decoy > vault/Chat/sessions.db", "rm -rf vault/Chat; mv vault/Other vault/Chat"},
		{"mv vault/Chat vault/Other; ln -s Other vault/Chat", "rm -f vault/Chat; mv vault/Other vault/Chat"},
		{"mv vault v2; mkdir vault", "rmdir vault; mv v2 vault"},
		{"chmod 000 vault/Chat", "chmod 700 vault/Chat"},
	} {
		e.run(t, steps.do)
		if out := e.run(t, "chmod 700 vault/Chat; cat vault/Chat/sessions.db vault/Other/sessions.db v2/Chat/sessions.db 2>&1"); strings.Contains(out, secret) || !strings.Contains(out, "hide") && !strings.HasPrefix(steps.do, "chmod") {
			t.Errorf("%s: %s", steps.do, out)
		}
		if out, err := exec.Command("/bin/sh", "-c", "cd "+e.dir+"; "+steps.undo).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", steps.undo, out)
		}
		if out := e.run(t, "cat vault/note"); out != "open\n" {
			t.Errorf("after %s: %q", steps.undo, out)
		}
	}
}

func TestAHiddenFileIsHiddenAtEveryPlaceItIsMounted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes mounts")
	}
	e := newEstate(t)
	for _, dir := range []string{"other", "part"} {
		if err := os.Mkdir(e.at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"vault": "other", "vault/.parachute/trash": "part"} {
		if err := unix.Mount(e.at(from), e.at(to), "", unix.MS_BIND, ""); err != nil {
			t.Skip("no mounts here:", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(e.at(to), unix.MNT_DETACH) })
	}
	out := e.run(t, "cat other/note other/.parachute/agents/a.md; cat other/Chat/sessions.db other/.parachute/lock other/.parachute/trash/note part/note")
	if strings.Contains(out, secret) || !strings.HasPrefix(out, "open\n") {
		t.Error(out)
	}
}

func TestAProgramBehindTheVeilEndsWithItsContextAndItsWatcher(t *testing.T) {
	e := newEstate(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, err := e.veil.Tree(ctx, "", e.dir, []string{"PATH=/usr/bin:/bin"}, "/bin/bash", "-c", "setsid sleep 300 & trap '' TERM HUP INT; touch begun; echo begun; while :; do touch alive; done")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	Release(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	// Everything below the watcher, as it is seen from outside.
	var all []int
	for todo := []int{cmd.Process.Pid}; len(todo) > 0; todo = todo[1:] {
		_, children := measure.Family(todo[0])
		all, todo = append(all, children...), append(todo, children...)
	}
	if len(all) < 4 { // bwrap twice, bash, sleep
		t.Errorf("only %d processes were found", len(all))
	}
	cancel()
	_ = cmd.Wait()
	for _, pid := range all {
		if err := syscall.Kill(pid, 0); err == nil && !zombie(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// zombie reports whether only the exit code of a process is left.
func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

// Root keeps what programs need of its rights, and nothing that could undo the veil.
func TestRootBehindTheVeilHasNoRightThatUndoesIt(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is about a gateway that is root")
	}
	e := newEstate(t)
	out := e.run(t, "for f in self 1; do grep -h '^Cap' /proc/$f/status; done")
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		caps, err := strconv.ParseUint(value, 16, 64)
		if err != nil {
			t.Fatal(out)
		}
		for _, c := range []uint{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_MKNOD, unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_RAWIO, unix.CAP_SYS_MODULE, unix.CAP_SYS_BOOT, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE} {
			if name != "CapBnd" && caps&(1<<c) != 0 {
				t.Errorf("%s has capability %d", name, c)
			}
		}
	}
	if out := e.run(t, "touch f && chown 65534 f && stat -c %u f; setpriv --reuid 65534 --clear-groups id -u"); out != "65534\n65534\n" {
		t.Error(out)
	}
}

func TestAVeilTrialReturnsWhyThereIsNone(t *testing.T) {
	if v, why := TryVeil(None).Open(nil); v != nil || !strings.Contains(why, "switched off") {
		t.Error(v, why)
	}
	var none *Veil
	cmd, err := none.Tree(t.Context(), self(t), "/", []string{"PATH=/usr/bin:/bin"}, "/bin/echo", "fine")
	if err != nil {
		t.Fatal(err)
	}
	if out := said(t, cmd); out != "fine\n" {
		t.Error(out)
	}
}

func BenchmarkVeil(b *testing.B) {
	v, why := TryVeil(Auto).Open(func() Cover { return Cover{} })
	if v == nil {
		b.Skip(why)
	}
	for b.Loop() {
		cmd, err := v.Tree(b.Context(), "", "/", []string{"PATH=/usr/bin:/bin"}, "/bin/true")
		if err != nil {
			b.Fatal(err)
		}
		err = cmd.Start()
		Release(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestRootBehindTheVeilChangesNoSettingOfTheKernel: one that names a program
// (core_pattern, modprobe) would run it outside of the veil.
func TestRootBehindTheVeilChangesNoSettingOfTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the kernel's settings are root's")
	}
	e := newEstate(t)
	got := e.run(t, `cat /proc/sys/kernel/ostype
for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger; do
	[ ! -e $f ] || (exec 3>>$f) 2>/dev/null && [ -e $f ] && echo "$f can be written"
done; true`) // opened only: nothing is changed where this fails
	if got != "Linux\n" {
		t.Error(got)
	}
}
