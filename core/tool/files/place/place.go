// Package place opens files for the tools that read, search and change them, so
// that what was decided on is what is opened. It goes through os.Root, waits for
// no pipe and no device, follows no link that was not resolved before, and asks
// what was opened for its real name: a link, a rename or a second hard link
// between the decision and the opening gains nothing.
package place

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// ErrMoved: what was opened is not what was decided on. Someone renamed or
// linked in between.
var ErrMoved = errors.New("the file changed its place while it was opened")

// A Place is where a name is on the disk. Close it.
type Place struct {
	root *os.Root
	base string // absolute path of root, links resolved
	rel  string // in root
	own  bool   // root is ours to close
}

// Path returns the place's absolute path, no link in it.
func (p Place) Path() string { return filepath.Join(p.base, p.rel) }

// Close releases what At opened.
func (p Place) Close() {
	if p.own {
		_ = p.root.Close()
	}
}

// At returns where a name of Turn.Name is. Names outside of the vault are for
// full trust only, whatever else was decided.
func At(t *tool.Turn, name string) (Place, error) {
	if !filepath.IsAbs(name) {
		if !filepath.IsLocal(name) {
			return Place{}, core.Errorf(core.Denied, "the path leads out of the vault")
		}
		return Place{root: t.Vault.Root(), base: t.Vault.Path(), rel: name}, nil
	}
	if t.Trust < core.Full {
		return Place{}, core.Errorf(core.Denied, "the path leads out of the vault")
	}
	if System(name) {
		return Place{}, core.Errorf(core.Denied, "the system's folders /proc, /sys and /dev are not open to this tool")
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return Place{}, err
	}
	return Place{root: root, base: "/", rel: path.Join(".", name), own: true}, nil
}

// System reports whether name is in a directory whose files are no files: they
// show the gateway's own memory and environment, or block.
func System(name string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// Child returns the place of what is in the directory p. It needs no Close of its
// own, and ends with p's.
func (p Place) Child(name string) Place {
	return Place{root: p.root, base: p.base, rel: path.Join(p.rel, name)}
}

// Lstat checks what is there now, without opening it.
func (p Place) Lstat() (fs.FileInfo, error) { return p.root.Lstat(p.rel) }

// Name returns the place's name as Turn.Name makes it.
func (p Place) Name(t *tool.Turn) string {
	abs := p.Path()
	if in, err := filepath.Rel(t.Vault.Path(), abs); err == nil && filepath.IsLocal(in) {
		return filepath.ToSlash(in)
	}
	return abs
}

// May asks a bound of a Turn; one that no one set opens nothing.
func May(bound func(string) bool, name string) bool { return bound != nil && bound(name) }

// An Opener opens places. The zero value is right.
type Opener struct {
	// Proc is where the kernel names open files; "" is /proc/self/fd. Where there
	// is none, every directory on the way is checked instead.
	Proc string
}

func (o Opener) proc() string {
	if o.Proc == "" {
		return "/proc/self/fd"
	}
	return o.Proc
}

// Open opens exactly the file or directory that is at p, with no link on the
// way, and reports what it is. It never waits for a FIFO or a device. flag adds to
// O_RDONLY and O_NONBLOCK.
func (o Opener) Open(p Place, flag int) (*os.File, fs.FileInfo, error) {
	for try := 0; ; try++ {
		file, st, err := o.openOnce(p, flag)
		// A file that someone saves by renaming is another one for a moment.
		if try < 3 && errors.Is(err, ErrMoved) {
			continue
		}
		return file, st, err
	}
}

func (o Opener) openOnce(p Place, flag int) (*os.File, fs.FileInfo, error) {
	before, err := p.root.Lstat(p.rel)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() && !before.IsDir() {
		return nil, nil, Irregular(before.Mode())
	}
	file, err := p.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK|flag, 0)
	if err != nil {
		if escapes(err) {
			err = ErrMoved
		}
		return nil, nil, err
	}
	st, err := o.verify(p, file)
	if err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		err = Irregular(st.Mode())
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, st, nil
}

// verify holds the real name of what was opened against p, so that a rename or
// a link between check and open gains nothing.
func (o Opener) verify(p Place, file *os.File) (fs.FileInfo, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if real, ok := o.realPath(file); ok {
		if real != p.Path() {
			return nil, ErrMoved
		}
	} else if !straight(p) {
		return nil, ErrMoved
	}
	now, err := p.root.Lstat(p.rel)
	if err != nil || !os.SameFile(st, now) {
		return nil, ErrMoved
	}
	return st, nil
}

// realPath asks the kernel for the name of an open file; false where there is
// no /proc.
func (o Opener) realPath(file *os.File) (real string, ok bool) {
	c, err := file.SyscallConn()
	if err != nil {
		return "", false
	}
	err = c.Control(func(fd uintptr) {
		to, err := os.Readlink(filepath.Join(o.proc(), strconv.Itoa(int(fd))))
		real, ok = to, err == nil
	})
	return real, ok && err == nil
}

// straight reports whether no directory on the way to p is a link.
func straight(p Place) bool {
	for dir := path.Dir(p.rel); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if st, err := p.root.Lstat(dir); err != nil || !st.IsDir() {
			return false
		}
	}
	return true
}

// escapes: os.Root has no exported error for a link that leads out.
func escapes(err error) bool { return strings.HasSuffix(err.Error(), "path escapes from parent") }

// Irregular states as text why what has mode m is not opened.
func Irregular(m fs.FileMode) error {
	what := "no regular file"
	switch {
	case m&fs.ModeSymlink != 0:
		return ErrMoved // names have no links left
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m&fs.ModeDevice != 0:
		what = "a device"
	}
	return core.Errorf(core.Invalid, "it is %s, and only regular files are read or written", what)
}

// Single refuses, below full trust, a file that has a second name somewhere:
// the bounds were asked for this one only.
func Single(t *tool.Turn, st fs.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if t.Trust >= core.Full || st.IsDir() || ok && sys.Nlink <= 1 {
		return nil
	}
	return core.Errorf(core.Denied, "the file has a second name (a hard link), and at this trust only files with one name are open")
}

// Explain turns what went wrong with a file into words for the model. shown is
// the path as the model wrote it: the resolved one may be none of its business.
func Explain(shown string, err error) error {
	var known *core.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return &core.Error{Kind: known.Kind, Text: shown + ": " + known.Text, Err: known.Err}
	case errors.Is(err, ErrMoved):
		return core.Errorf(core.Conflict, "%s: the file was moved or replaced while it was opened; try again", shown)
	case errors.Is(err, fs.ErrNotExist):
		return core.Errorf(core.NotFound, "%s does not exist", shown)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return core.Errorf(core.NotFound, "%s does not exist: a part of the path is no folder, or too long", shown)
	case errors.Is(err, syscall.ELOOP):
		return core.Errorf(core.NotFound, "%s does not exist: its links lead in a circle", shown)
	case errors.Is(err, syscall.ENXIO):
		return core.Errorf(core.Invalid, "%s is no regular file", shown)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return &core.Error{Kind: core.Busy, Text: shown + ": the disk is full", Err: err}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &core.Error{Kind: core.Denied, Text: shown + ": the file's owner or its disk does not let the gateway in", Err: err}
	}
	return err
}
