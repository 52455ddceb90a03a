package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gatehouse/cmd/gatehouse/doctor"
)

// A hardening is what systemd would do to the service before it starts it, as far as
// that can be done without systemd: mounts, privileges and the filter of system calls.
// Control groups and the device controller are left out.
type hardening struct {
	Program string
	User    int
	Calls   []uint32 // that are allowed
	Hide    []string // programs that are not there
}

const hardened = "GATEHOUSE_TEST_HARDENING" // the tests' own program becomes the service

func init() {
	text := os.Getenv(hardened)
	if text == "" {
		return
	}
	var h hardening
	err := json.Unmarshal([]byte(text), &h)
	if err == nil {
		err = h.become()
	}
	fmt.Fprintln(os.Stderr, "hardening:", err)
	os.Exit(99)
}

// become replaces this process by the program, as the unit starts it.
func (h hardening) become() error {
	runtime.LockOSThread()
	program, err := os.Open(h.Program)
	if err != nil {
		return err
	}
	if err := h.mounts(program); err != nil {
		return err
	}
	if err := h.privileges(); err != nil {
		return err
	}
	filter := h.filter()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return syscall.Exec("/usr/local/bin/gatehouse", []string{"gatehouse", "doctor", "--json"}, []string{
		"GATEHOUSE_VAULT_PATH=/var/lib/gatehouse", "XDG_RUNTIME_DIR=/run/gatehouse", "HOME=/var/lib/gatehouse", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	})
}

// mounts does what ProtectSystem=strict, ProtectHome, PrivateTmp, PrivateDevices,
// ProtectKernelModules, StateDirectory and RuntimeDirectory do.
func (h hardening) mounts(program io.Reader) error {
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	empty := func(dir, mode string) error {
		if _, err := os.Stat(dir); err != nil {
			return nil
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode="+mode); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		return nil
	}
	var errs []error
	for _, dir := range []string{"/usr/local/bin", "/var/lib", "/run"} {
		errs = append(errs, empty(dir, "0755"))
	}
	errs = append(errs, empty("/tmp", "1777"), empty("/var/tmp", "1777"))
	for _, dir := range []string{"/home", "/root", "/usr/lib/modules"} {
		errs = append(errs, empty(dir, "0000"))
	}
	errs = append(errs, devices())
	own := []string{"/var/lib/gatehouse", "/var/lib/gatehouse-backups", "/run/gatehouse"}
	for _, dir := range own {
		errs = append(errs, os.Mkdir(dir, 0o700), os.Chown(dir, h.User, h.User), unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	}
	f, err := os.OpenFile("/usr/local/bin/gatehouse", os.O_WRONLY|os.O_CREATE, 0o755)
	if err == nil {
		_, err = io.Copy(f, program)
		err = errors.Join(err, f.Close())
	}
	errs = append(errs, err)
	for _, name := range h.Hide {
		errs = append(errs, unix.Mount("/dev/null", name, "", unix.MS_BIND, ""))
	}
	errs = append(errs, unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
	for _, dir := range append(own, "/tmp", "/var/tmp", "/proc", "/sys") {
		errs = append(errs, unix.MountSetattr(-1, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	}
	return errors.Join(errs...)
}

// devices makes /dev with the few devices that PrivateDevices leaves.
func devices() error {
	const dev = "/run/dev"
	errs := []error{os.Mkdir(dev, 0o755), unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=0755")}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		errs = append(errs, os.WriteFile(filepath.Join(dev, name), nil, 0o666), unix.Mount("/dev/"+name, filepath.Join(dev, name), "", unix.MS_BIND, ""))
	}
	errs = append(errs, os.Mkdir(dev+"/shm", 0o1777), unix.Mount("tmpfs", dev+"/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
		os.Symlink("/proc/self/fd", dev+"/fd"), unix.Mount(dev, "/dev", "", unix.MS_MOVE, ""))
	return errors.Join(errs...)
}

// privileges does what User, CapabilityBoundingSet, NoNewPrivileges and
// MemoryDenyWriteExecute do, for this thread.
func (h hardening) privileges() error {
	errs := []error{unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		errs = append(errs, unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0))
	}
	id := uintptr(h.User)
	for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS}, {unix.SYS_SETRESGID, id, id, id}, {unix.SYS_SETRESUID, id, id, id}} {
		if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
			errs = append(errs, e)
		}
	}
	syscall.Umask(0o077)
	return errors.Join(append(errs, unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0))...)
}

// filter does what SystemCallFilter, SystemCallArchitectures, RestrictAddressFamilies,
// RestrictNamespaces, LockPersonality and RestrictSUIDSGID do.
func (h hardening) filter() (p []unix.SockFilter) {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		set   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
		arg0  = 16
	)
	fail := func(e syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	add := func(code uint16, k uint32, yes, no uint8) {
		p = append(p, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
	}
	add(load, 4, 0, 0)
	add(equal, unix.AUDIT_ARCH_X86_64, 1, 0)
	add(ret, fail(unix.EPERM), 0, 0)
	add(load, 0, 0, 0)
	add(equal, unix.SYS_CLONE3, 0, 1)
	add(ret, fail(unix.ENOSYS), 0, 0) // its flags cannot be read
	families := []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	add(equal, unix.SYS_SOCKET, 0, uint8(2+len(families)))
	add(load, arg0, 0, 0)
	for i, f := range families {
		add(equal, f, uint8(len(families)-i), 0)
	}
	add(ret, fail(unix.EAFNOSUPPORT), 0, 0)
	add(load, 0, 0, 0)
	add(equal, unix.SYS_PERSONALITY, 0, 4)
	add(load, arg0, 0, 0)
	add(equal, 0, 2, 0)
	add(equal, 0xffffffff, 1, 0)
	add(ret, fail(unix.EPERM), 0, 0)
	add(load, 0, 0, 0)
	for _, mode := range []struct{ call, arg uint32 }{{unix.SYS_CHMOD, 1}, {unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}} {
		add(equal, mode.call, 0, 4)
		add(load, arg0+8*mode.arg, 0, 0)
		add(set, unix.S_ISUID|unix.S_ISGID, 0, 1)
		add(ret, fail(unix.EPERM), 0, 0)
		add(load, 0, 0, 0)
	}
	for _, call := range h.Calls {
		add(equal, call, 0, 1)
		add(ret, unix.SECCOMP_RET_ALLOW, 0, 0)
	}
	add(ret, fail(unix.EPERM), 0, 0)
	return p
}

// callNumbers reads the numbers of system calls.
func callNumbers(t *testing.T) map[string]uint32 {
	t.Helper()
	const header = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
	f, err := os.Open(header)
	if err != nil {
		t.Skip("SKIPPED: the numbers of system calls are not there: ", err)
	}
	defer f.Close()
	numbers := map[string]uint32{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if words := strings.Fields(s.Text()); len(words) == 3 && words[0] == "#define" && strings.HasPrefix(words[1], "__NR_") {
			if n, err := strconv.ParseUint(words[2], 10, 32); err == nil {
				numbers[strings.TrimPrefix(words[1], "__NR_")] = uint32(n)
			}
		}
	}
	return numbers
}

// callsOf returns the system calls that words of SystemCallFilter name.
func callsOf(t *testing.T, analyze string, words []string) (names []string) {
	t.Helper()
	for _, word := range words {
		if !strings.HasPrefix(word, "@") {
			names = append(names, word)
			continue
		}
		out, err := exec.Command(analyze, "syscall-filter", "--no-pager", word).Output()
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		var inside []string
		for _, line := range strings.Split(string(out), "\n")[1:] {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				inside = append(inside, line)
			}
		}
		names = append(names, callsOf(t, analyze, inside)...)
	}
	return names
}

// allowed returns the system calls that a unit allows.
func allowed(t *testing.T, analyze, unit string) (calls []uint32) {
	t.Helper()
	names := callsOf(t, analyze, []string{"@default"})
	for line := range strings.Lines(unit) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		if !ok {
			continue
		}
		if less, isLess := strings.CutPrefix(value, "~"); isLess {
			out := callsOf(t, analyze, strings.Fields(less))
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(out, name) })
		} else {
			names = append(names, callsOf(t, analyze, strings.Fields(value))...)
		}
	}
	numbers := callNumbers(t)
	for _, name := range names {
		if n, ok := numbers[name]; ok { // else it is of another architecture
			calls = append(calls, n)
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// underUnit returns what doctor finds about the sandbox where the hardening of a unit
// holds, and programs in hide are not there.
func underUnit(t *testing.T, unit string, hide ...string) []doctor.Finding {
	t.Helper()
	if os.Getuid() != 0 || runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: only root on amd64 can do to a program what systemd does")
	}
	h := hardening{Program: program(t), User: 61111, Calls: allowed(t, installed(t, "systemd-analyze"), unit), Hide: hide}
	if len(h.Calls) < 200 {
		t.Fatalf("only %d system calls are allowed", len(h.Calls))
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = []string{hardened + "=" + string(text)}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var r struct{ Checks []doctor.Finding }
	if bad := json.Unmarshal(out, &r); bad != nil {
		t.Fatalf("doctor: %v, %v\n%s\n%s", err, bad, out, errs.String())
	}
	r.Checks = slices.DeleteFunc(r.Checks, func(f doctor.Finding) bool { return f.Name != "sandbox" })
	if len(r.Checks) == 0 {
		t.Fatalf("doctor says nothing of a sandbox: %s\n%s", out, errs.String())
	}
	return r.Checks
}

func withoutShell(found []doctor.Finding) bool {
	return slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return strings.Contains(f.Text, "there is no shell below full trust")
	})
}

// The page says that commands below full trust work in the unit: so they do, as far as
// systemd's hardening can be had without systemd.
func TestCommandsBelowFullTrustWorkInTheUnit(t *testing.T) {
	t.Parallel()
	installed(t, "bwrap")
	unit, err := os.ReadFile("../../configs/systemd/gatehouse.service")
	if err != nil {
		t.Fatal(err)
	}
	found := underUnit(t, string(unit))
	if withoutShell(found) || slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.State != doctor.OK }) {
		t.Errorf("under the unit's hardening doctor finds %+v", found)
	}
	// The same without mounts: what is shown above can fail.
	unit = []byte(strings.Replace(string(unit), "@system-service @mount ", "@system-service ", 1))
	if found := underUnit(t, string(unit)); !withoutShell(found) {
		t.Errorf("without mounts doctor finds %+v", found)
	}
}

// The pages, the unit and the image's file say in their first lines whether commands
// below full trust work there, and what turns them on.
func TestTheFirstLinesSayWhereShellsWork(t *testing.T) {
	t.Parallel()
	for file, wants := range map[string][]string{
		"docs/deployment.md":                {"install the package `bubblewrap`", "off in the Docker image", "run the program on the host"},
		"docs/sandbox.md":                   {"installed package `bubblewrap`", "off in the Docker image"},
		"Dockerfile":                        {"no shell"},
		"configs/systemd/gatehouse.service": {"install the package bubblewrap"},
	} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		head := strings.TrimPrefix(strings.TrimLeft(string(text), "# "), "\n")
		if i := strings.Index(head, "\n\n- ["); i > 0 {
			head = head[:i]
		}
		head = strings.Join(strings.Fields(head[:min(len(head), 600)]), " ")
		for _, want := range wants {
			if !strings.Contains(head, want) {
				t.Errorf("the first lines of %s do not say %q: %s", file, want, head)
			}
		}
	}
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(image), "\nFROM scratch\n")
	if last == "" || strings.Contains(last, "bwrap") || strings.Contains(last, "/bin/sh") {
		t.Errorf("the image has a sandbox now: %s", last)
	}
}

// Without bwrap, as in the image, doctor says that there is no shell below full trust,
// and what to do.
func TestDoctorSaysThatThereIsNoShellWithoutBubblewrap(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../configs/systemd/gatehouse.service")
	if err != nil {
		t.Fatal(err)
	}
	found := underUnit(t, string(unit), installed(t, "bwrap"))
	if !withoutShell(found) || found[0].Fix == "" {
		t.Errorf("doctor finds %+v", found)
	}
}
