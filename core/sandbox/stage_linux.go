package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox/landlock"
	"gatehouse/core/sandbox/seccomp"
)

// First arguments of our own program that Main answers.
const (
	stageWord = "gatehouse:stage"
	treeWord  = "gatehouse:tree"

	// Both of a Veil: the watcher outside, and what hides inside.
	passWord   = "gatehouse:pass"
	behindWord = "gatehouse:behind"
)

// exitStage is the exit code of a stage that could not do its work.
const exitStage = 125

// Main is called first by main (and TestMain): if this process was started by a Box
// or by Tree, it runs as their stage and never returns; otherwise it does nothing.
func Main() {
	if len(os.Args) < 3 {
		return
	}
	var err error
	switch os.Args[1] {
	case stageWord:
		err = stage(os.Args[2:])
	case treeWord:
		err = tree(os.Args[2:])
	case passWord:
		err = passOn(os.Args[2:])
	case behindWord:
		err = behind(os.Args[2:])
	default:
		return
	}
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	os.Exit(exitStage)
}

// An order is the input of the stage inside.
type order struct {
	Argv, Env             []string
	Dir                   string
	Read, Write           []string // for Landlock
	Mounts                []mounted
	Memory, FileSize, CPU uint64
	Processes             uint64
}

func newOrder(s Spec, argv []string) order {
	return order{
		Argv: argv, Env: s.Env, Dir: s.Dir,
		Read:     slices.Concat(system, settings, []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/proc", "/dev"}, s.ReadOnly),
		Write:    slices.Concat([]string{"/tmp", "/dev/shm", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx"}, s.Writable),
		Memory:   4 * uint64(s.Limits.Memory), // address space: programs reserve more than they use; watch counts what is used
		FileSize: uint64(s.Limits.FileSize), CPU: uint64(s.Limits.CPU.Seconds()),
		Processes: uint64(s.Limits.Processes),
	}
}

// stage gives up everything that the order does not leave, and becomes the
// program. It holds one thread, because what it gives up is given up by thread,
// and the program that this thread becomes keeps it. fds are the numbers of the
// order and of the life line.
func stage(fds []string) error {
	runtime.LockOSThread()
	n, err := strconv.Atoi(fds[0])
	if err != nil {
		return err
	}
	if err := alive(fds[1:]); err != nil {
		return err
	}
	text, err := io.ReadAll(os.NewFile(uintptr(n), "order"))
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	if err := checkMounts(o.Mounts); err != nil {
		return err
	}
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	path, err := lookPath(o.Argv[0], o.Env)
	if err != nil {
		return err
	}
	if err := giveUpInherited(); err != nil {
		return err
	}
	if err := landlock.Restrict(o.Read, o.Write); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	calls := seccomp.Isolated() // before the limits, which this program itself may not meet
	if err := limit(o); err != nil {
		return err
	}
	if err := calls.Install(); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return fmt.Errorf("start %s: %w", o.Argv[0], unix.Exec(path, o.Argv, o.Env))
}

// giveUpInherited leaves the program that this thread becomes no key of the
// gateway's session, no open file but the first three, and no way to more rights.
func giveUpInherited() error {
	if _, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 && errno != unix.ENOSYS && errno != unix.EPERM {
		return fmt.Errorf("session keyring: %w", errno)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("inherited files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return nil
}

// alive returns an error if the gateway has ended. From here on bwrap's processes
// end with it; before that its end would not have been noticed.
func alive(fds []string) error {
	if len(fds) == 0 {
		return nil
	}
	n, err := strconv.Atoi(fds[0])
	if err != nil {
		return err
	}
	if n, err = unix.Poll([]unix.PollFd{{Fd: int32(n)}}, 0); n > 0 || err != nil {
		return errors.Join(errors.New("the gateway has ended: nothing is started"), err)
	}
	return nil
}

// lookPath finds a program by the PATH that it will have.
func lookPath(name string, env []string) (string, error) {
	os.Clearenv()
	for _, kv := range env {
		if len(kv) > 5 && kv[:5] == "PATH=" {
			_ = os.Setenv("PATH", kv[5:])
		}
	}
	return exec.LookPath(name)
}

func limit(o order) error {
	for _, l := range []struct {
		what int
		to   uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 1024}, {unix.RLIMIT_FSIZE, o.FileSize},
		{unix.RLIMIT_CPU, o.CPU}, {unix.RLIMIT_NPROC, o.Processes}, {unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 64 << 10}, {unix.RLIMIT_AS, o.Memory},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
		to := min(l.to, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: to, Max: to}); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
	}
	return nil
}
