package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/beneath"
)

type bubblewrap struct {
	bwrap, stage string          // paths of bwrap and of our own program
	can          map[string]bool // options of newer versions
	groups       *Groups         // nil: none
}

func (w *bubblewrap) Name() string { return Bubblewrap }

// Paths inside.
const (
	stagePath = "/.gatehouse" // our own program, until it has become another
	insideID  = "1000"
	shmBytes  = 64 << 20
)

// system are the directories of programs and libraries, where they are no links into /usr.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// settings are what programs need of /etc, as far as it is there. The rest of
// /etc is not seen.
var settings = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates", "/etc/terminfo", "/etc/magic",
}

// Files of /etc that we write, because the host's contain user names.
const (
	passwdFile = "root:x:0:0:root:/:/bin/false\nguest:x:" + insideID + ":" + insideID + ":guest:/tmp/home:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
	groupFile  = "root:x:0:\nguest:x:" + insideID + ":\nnogroup:x:65534:\n"
	hostsFile  = "127.0.0.1 localhost sandbox\n::1 localhost\n"
)

// Numbers of the files that bwrap inherits, in the order of handed.
const (
	argsFD = 3 + iota
	statusFD
	passwdFD
	groupFD
	hostsFD
	orderFD
	lifeFD // a pipe that ends with the gateway
)

func (w *bubblewrap) Command(ctx context.Context, s Spec, argv ...string) (*exec.Cmd, error) {
	if err := check(s, argv); err != nil {
		return nil, err
	}
	s.Limits = s.Limits.orDefaults()
	handles, err := w.open(s)
	if err != nil {
		return nil, err
	}
	args, err := w.args(s, handles)
	if err != nil {
		closeAll(handles)
		return nil, err
	}
	told := newOrder(s, argv)
	told.Mounts = mountsOf(s)
	order, err := json.Marshal(told)
	if err != nil {
		return nil, fmt.Errorf("order for the sandbox: %w", err)
	}
	theirs, life, err := os.Pipe()
	if err != nil {
		closeAll(handles)
		return nil, fmt.Errorf("sandbox life line: %w", err)
	}
	files, status, err := handed(append([]*os.File{theirs}, handles...), strings.Join(args, "\x00")+"\x00", passwdFile, groupFile, hostsFile, string(order))
	if err != nil {
		return nil, errors.Join(err, life.Close())
	}
	cmd := exec.CommandContext(ctx, w.bwrap, "--args", strconv.Itoa(argsFD), "--", stagePath, stageWord, strconv.Itoa(orderFD), strconv.Itoa(lifeFD))
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.ExtraFiles = files
	held := w.group(s.Limits)
	// bwrap sets its own parent-death signal, but only after a moment. Like it, this
	// relies on no thread of this process ending before the process does.
	cmd.SysProcAttr = held.attr(&syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL})
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		why := watch(ctx, status, s, held)
		if by := held.over(s.Limits); why == "" && by != "" && s.OnLimit != nil {
			s.OnLimit(by) // the kernel ended it before watch could
		}
		held.end()
		if s.OnGone != nil {
			s.OnGone()
		}
	}()
	context.AfterFunc(ctx, func() {
		_ = status.SetReadDeadline(time.Now().Add(endTime)) // if Release was not called
		<-watched
		_, _ = status.Close(), life.Close()
	})
	return cmd, nil
}

// group returns the control group of one program, nil without control groups.
func (w *bubblewrap) group(l Limits) *group {
	if w.groups == nil {
		return nil
	}
	held, err := w.groups.make(l)
	if err != nil {
		w.groups.log.Warn("a program runs without a control group: its limits are watched only", "error", err)
		return nil
	}
	return held
}

// check refuses what bwrap would understand otherwise than it is meant.
func check(s Spec, argv []string) error {
	if len(argv) == 0 {
		return errors.New("sandbox: no program")
	}
	if n := len(s.ReadOnly) + len(s.Writable) + len(s.Masked); n > MaxPaths {
		return core.Errorf(core.Invalid, "the sandbox would need %d mounts; at most %d are made", n, MaxPaths)
	}
	for _, p := range slices.Concat(s.ReadOnly, s.Writable, s.Masked, []string{s.Dir}) {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) || p == "/" {
			return fmt.Errorf("sandbox: path %q is not absolute and clean", p)
		}
	}
	return nil
}

// maxHandles bounds the paths that are handed over open; the rest go by name.
const maxHandles = 500

// open opens the paths of s, so that bwrap mounts exactly these files even if other
// processes rename them. It follows no link. What is not passed as an open file is
// checked inside, like everything else, before the program starts.
func (w *bubblewrap) open(s Spec) (handles []*os.File, err error) {
	for _, p := range slices.Concat(s.Writable, s.ReadOnly) {
		if len(handles) == maxHandles {
			break
		}
		fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if errors.Is(err, unix.ENOSYS) {
			return nil, nil
		}
		if err != nil {
			closeAll(handles)
			return nil, fmt.Errorf("sandbox path: %w", err)
		}
		handles = append(handles, os.NewFile(uintptr(fd), p))
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		if id, ok := s.IDs[p]; err == nil && ok && id != (beneath.ID{Dev: st.Dev, Ino: st.Ino}) {
			err = errReplaced
		}
		if err != nil {
			closeAll(handles)
			return nil, fmt.Errorf("sandbox path: %w", err)
		}
	}
	return handles, nil
}

// errReplaced: another file took the place of one that was decided on.
var errReplaced = errors.New("a file was replaced while the sandbox was made")

// handed returns the files that bwrap inherits, and our end of its status pipe.
func handed(handles []*os.File, args string, data ...string) (files []*os.File, status *os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(append(append(files, status), handles...))
		}
	}()
	status, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox status: %w", err)
	}
	first, err := memory("args", args)
	if err != nil {
		return []*os.File{theirs}, status, err
	}
	files = []*os.File{first, theirs}
	for _, d := range data {
		f, err := memory("data", d)
		if err != nil {
			return files, status, err
		}
		files = append(files, f)
	}
	return append(files, handles...), status, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// memory returns an anonymous file with the content s, at its start.
func memory(name, s string) (*os.File, error) {
	fd, err := unix.MemfdCreate("gatehouse-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.WriteString(s); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("file in memory: %w", err), f.Close())
	}
	return f, nil
}

// args returns bwrap's options for s; handles follow the other files.
func (w *bubblewrap) args(s Spec, handles []*os.File) ([]string, error) {
	a := []string{
		"--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
		"--uid", insideID, "--gid", insideID, "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv",
		"--json-status-fd", strconv.Itoa(statusFD),
	}
	if w.can["--disable-userns"] {
		a = append(a, "--disable-userns")
	}
	a = append(a, systemArgs()...)
	a = append(a,
		"--ro-bind-data", strconv.Itoa(passwdFD), "/etc/passwd",
		"--ro-bind-data", strconv.Itoa(groupFD), "/etc/group",
		"--ro-bind-data", strconv.Itoa(hostsFD), "/etc/hosts",
		"--proc", "/proc", "--dev", "/dev", "--ro-bind", w.stage, stagePath)
	if w.can["--size"] {
		a = append(a, "--size", strconv.Itoa(shmBytes), "--tmpfs", "/dev/shm")
	}
	switch {
	case s.Scratch != "":
		a = append(a, "--bind", s.Scratch, "/tmp")
	case w.can["--size"]:
		a = append(a, "--size", strconv.Itoa(shmBytes), "--tmpfs", "/tmp")
	default:
		a = append(a, "--tmpfs", "/tmp")
	}
	view, err := w.viewArgs(s, handles)
	if err != nil {
		return nil, err
	}
	a = append(a, view...)
	return append(a, "--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", s.Dir), nil
}

// systemArgs show the system as the host has it: a link stays a link.
func systemArgs() []string {
	var a []string
	for _, p := range system {
		if to, err := os.Readlink(p); err == nil {
			a = append(a, "--symlink", to, p)
		} else if st, err := os.Stat(p); err == nil && st.IsDir() {
			a = append(a, "--ro-bind", p, p)
		}
	}
	for _, p := range settings {
		a = append(a, "--ro-bind-try", p, p)
	}
	return a
}

// viewArgs mount what s gives, what lies higher first.
func (w *bubblewrap) viewArgs(s Spec, handles []*os.File) ([]string, error) {
	open := map[string]int{} // by path: the number that it has in bwrap
	for i, f := range handles {
		open[f.Name()] = lifeFD + 1 + i
	}
	type mount struct{ how, path string }
	var all []mount
	for how, paths := range map[string][]string{"--ro-bind": s.ReadOnly, "--bind": s.Writable, "": s.Masked} {
		for _, p := range paths {
			all = append(all, mount{how, p})
		}
	}
	core.Sort(all, func(a, b mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), strings.Compare(a.path, b.path))
	})
	var a, after []string
	for _, m := range all {
		st, err := os.Lstat(m.path)
		switch {
		case errors.Is(err, os.ErrNotExist) && m.how == "":
			continue // gone since: nothing to hide
		case err != nil:
			return nil, fmt.Errorf("sandbox path: %w", err)
		case st.Mode()&os.ModeSymlink != 0:
			return nil, fmt.Errorf("sandbox path %q is a link", m.path)
		case open[m.path] != 0 && w.can[m.how+"-fd"]:
			a = append(a, m.how+"-fd", strconv.Itoa(open[m.path]), m.path)
		case open[m.path] != 0: // an older bwrap: it resolves the descriptor to a name, which is checked inside
			a = append(a, m.how, "/proc/self/fd/"+strconv.Itoa(open[m.path]), m.path)
		case m.how != "":
			a = append(a, m.how, m.path, m.path)
		case st.IsDir():
			a = append(a, "--tmpfs", m.path)
			after = append(after, "--remount-ro", m.path)
		default:
			a = append(a, "--ro-bind", "/dev/null", m.path)
		}
	}
	return append(a, after...), nil
}
