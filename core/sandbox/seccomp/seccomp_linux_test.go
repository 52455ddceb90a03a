package seccomp

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// filtered names the filter of the child that TestAFilteredProcess is.
const filtered = "SANDBOX_TEST_FILTER"

// TestAFilteredProcess is no test: it is the program of those below. It takes a
// filter and makes every call that should be refused, with arguments that no
// kernel accepts, so that a call which is let through fails in another way.
func TestAFilteredProcess(t *testing.T) {
	which := os.Getenv(filtered)
	if which == "" {
		t.Skip("a part of the tests of the filters")
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	build, deny, none := program, refused, absent
	if which == "veil" {
		build, deny, none = veilProgram, veilRefused, []uint32{unix.SYS_CLONE3}
	}
	if err := newFilter(build).Install(); err != nil {
		t.Fatal(err)
	}
	const bad = ^uintptr(0)
	for _, number := range deny {
		if _, _, errno := unix.Syscall6(uintptr(number), bad, bad, bad, bad, bad, bad); errno != unix.EPERM {
			fmt.Printf("call %d: %v\n", number, errno)
		}
	}
	for _, number := range none {
		if _, _, errno := unix.Syscall6(uintptr(number), bad, bad, bad, bad, bad, bad); errno != unix.ENOSYS {
			fmt.Printf("call %d: %v\n", number, errno)
		}
	}
	for _, c := range filteredCalls(which) {
		if _, _, errno := unix.Syscall6(c.number, c.args[0], c.args[1], c.args[2], 0, 0, 0); errno != c.want {
			fmt.Printf("%s: %v, want %v\n", c.what, errno, c.want)
		}
	}
	fmt.Println("tried")
}

type filteredCall struct {
	what   string
	number uintptr
	args   [3]uintptr
	want   unix.Errno
}

// filteredCalls are calls whose arguments decide.
func filteredCalls(which string) []filteredCall {
	if which == "veil" {
		return []filteredCall{
			{"unshare(NEWNS)", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWNS}, unix.EPERM},
			{"unshare(NEWNS|NEWUSER)", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWNS | unix.CLONE_NEWUSER}, unix.EPERM},
			{"clone(NEWNS)", unix.SYS_CLONE, [3]uintptr{unix.CLONE_NEWNS | uintptr(unix.SIGCHLD)}, unix.EPERM},
			{"unshare(0)", unix.SYS_UNSHARE, [3]uintptr{}, 0},
			{"getpid", unix.SYS_GETPID, [3]uintptr{}, 0},
		}
	}
	return []filteredCall{
		{"personality(?)", unix.SYS_PERSONALITY, [3]uintptr{0xffffffff}, 0},
		{"personality(0)", unix.SYS_PERSONALITY, [3]uintptr{0}, 0},
		{"personality(READ_IMPLIES_EXEC)", unix.SYS_PERSONALITY, [3]uintptr{0x0400000}, unix.EPERM},
		{"personality(ADDR_NO_RANDOMIZE)", unix.SYS_PERSONALITY, [3]uintptr{0x0040000}, unix.EPERM},
		{"ioctl(TIOCSTI)", unix.SYS_IOCTL, [3]uintptr{0, unix.TIOCSTI}, unix.EPERM},
		{"ioctl(TIOCSETD)", unix.SYS_IOCTL, [3]uintptr{0, unix.TIOCSETD}, unix.EPERM},
		{"ioctl(TIOCLINUX)", unix.SYS_IOCTL, [3]uintptr{0, unix.TIOCLINUX}, unix.EPERM},
		{"ioctl(FIONREAD)", unix.SYS_IOCTL, [3]uintptr{^uintptr(0), unix.TIOCINQ}, unix.EBADF},
		{"socket(VSOCK)", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EPERM},
		{"socket(ALG)", unix.SYS_SOCKET, [3]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EPERM},
		{"socketpair(TIPC)", unix.SYS_SOCKETPAIR, [3]uintptr{unix.AF_TIPC, unix.SOCK_STREAM}, unix.EPERM},
		{"socketpair(UNIX)", unix.SYS_SOCKETPAIR, [3]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}, unix.EFAULT},
		{"clone(NEWUSER)", unix.SYS_CLONE, [3]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, unix.EPERM},
		{"shmdt", unix.SYS_SHMDT, [3]uintptr{1}, unix.EINVAL},
		{"getpid", unix.SYS_GETPID, [3]uintptr{}, 0},
	}
}

// Every listed call is refused, each on its own, and calls beside them are not.
func TestTheFiltersRefuseEachOfTheirCalls(t *testing.T) {
	if !slices.Contains([]string{"amd64", "arm64"}, runtime.GOARCH) {
		t.Skip("no filter is made for this architecture")
	}
	for _, which := range []string{"sandbox", "veil"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAFilteredProcess$")
		cmd.Env = append(os.Environ(), filtered+"="+which)
		out, err := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), "tried\n") {
			t.Errorf("%s: %v\n%s", which, err, out)
		}
	}
}
