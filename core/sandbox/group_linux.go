package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A group is one program's. All methods of a nil one do nothing.
type group struct {
	path string
	dir  *os.File // locked
	log  *slog.Logger
}

// lock holds the group for as long as this process lives; it fails where
// another does.
func (o *group) lock() (err error) {
	if o.dir, err = os.Open(o.path); err != nil {
		return err
	}
	if err := unix.Flock(int(o.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(err, o.dir.Close())
	}
	return nil
}

// attr has the program begin in the group, so that nothing of it is ever outside.
func (o *group) attr(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	if o != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(o.dir.Fd())
	}
	return a
}

// over returns the limit at which the kernel stopped the program, "" for none.
func (o *group) over(l Limits) string {
	switch {
	case o == nil:
	case o.event("memory.events", "oom_kill") > 0:
		return memoryWords(l)
	case o.event("pids.events", "max") > 0:
		return processWords(l)
	}
	return ""
}

// event returns a number of one of the group's files; 0 without it.
func (o *group) event(file, name string) int {
	b, err := os.ReadFile(filepath.Join(o.path, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == name {
			n, _ := strconv.Atoi(string(f[1]))
			return n
		}
	}
	return 0
}

// kill ends every process of the group (Linux 5.14; before that its pid
// namespace has ended them).
func (o *group) kill() { _ = put(o.path, "cgroup.kill", "1") }

// end waits until the group is empty, helps where that takes long, and removes it.
func (o *group) end() {
	if o == nil {
		return
	}
	if !o.empty(endTime / 2) {
		o.kill()
		o.empty(endTime / 2)
	}
	if err := os.Remove(o.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.log.Warn("a program's control group stays until the next start", "error", err)
	}
	if o.dir != nil {
		_ = o.dir.Close()
	}
}

// empty waits until no process of the group runs.
func (o *group) empty(within time.Duration) bool {
	f, err := os.Open(filepath.Join(o.path, "cgroup.events"))
	if err != nil {
		return true // it is gone
	}
	defer f.Close()
	for stop := time.Now().Add(within); ; {
		if o.event("cgroup.events", "populated") == 0 {
			return true
		}
		left := time.Until(stop)
		if left <= 0 {
			return false
		}
		_, _ = f.ReadAt(make([]byte, 64), 0) // only what changes after this wakes the poll
		if o.event("cgroup.events", "populated") == 0 {
			return true
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(left.Milliseconds())+1)
	}
}

// put writes a value into one of a group's files, which must exist.
func put(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
