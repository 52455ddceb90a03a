package files

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

// errMoved: what was opened is not what was decided on. Somebody renamed or
// linked in between.
var errMoved = errors.New("the file changed its place while it was opened")

// A place is where a name stands on the disk. Close it.
type place struct {
	root *os.Root
	base string // absolute path of root, links resolved
	rel  string // in root
	own  bool   // root is ours to close
}

func (p place) path() string { return filepath.Join(p.base, p.rel) }

func (p place) Close() {
	if p.own {
		_ = p.root.Close()
	}
}

// at is where a name of Turn.Name stands. Names outside of the vault are for
// full trust only, whatever else was decided.
func at(t *tool.Turn, name string) (place, error) {
	if !filepath.IsAbs(name) {
		if !filepath.IsLocal(name) {
			return place{}, core.Errorf(core.Denied, "the path leads out of the vault")
		}
		return place{root: t.Vault.Root(), base: t.Vault.Path(), rel: name}, nil
	}
	if t.Trust < core.Full {
		return place{}, core.Errorf(core.Denied, "the path leads out of the vault")
	}
	if system(name) {
		return place{}, core.Errorf(core.Denied, "the system's folders /proc, /sys and /dev are not open to this tool")
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return place{}, err
	}
	return place{root: root, base: "/", rel: path.Join(".", name), own: true}, nil
}

// system reports whether name stands in a folder whose files are no files: they
// show the gateway's own memory and environment, or block.
func system(name string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// nameOf is the name, as Turn.Name makes it, of what stands below p.
func (p place) nameOf(t *tool.Turn, rel string) string {
	abs := filepath.Join(p.base, rel)
	if in, err := filepath.Rel(t.Vault.Path(), abs); err == nil && filepath.IsLocal(in) {
		return filepath.ToSlash(in)
	}
	return abs
}

// may asks a bound; one that nobody set opens nothing.
func may(bound func(string) bool, name string) bool { return bound != nil && bound(name) }

// open opens exactly the file or folder that stands at p, with no link on the
// way, and says what it is. It never waits for a FIFO or a device. flag adds to
// O_RDONLY and O_NONBLOCK.
func (f *files) open(p place, flag int) (*os.File, fs.FileInfo, error) {
	for try := 0; ; try++ {
		file, st, err := f.openOnce(p, flag)
		// A file that somebody saves by renaming is another one for a moment.
		if try < 3 && errors.Is(err, errMoved) {
			continue
		}
		return file, st, err
	}
}

func (f *files) openOnce(p place, flag int) (*os.File, fs.FileInfo, error) {
	before, err := p.root.Lstat(p.rel)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() && !before.IsDir() {
		return nil, nil, errKind(before.Mode())
	}
	file, err := p.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK|flag, 0)
	if err != nil {
		if escapes(err) {
			err = errMoved
		}
		return nil, nil, err
	}
	st, err := f.verify(p, file)
	if err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		err = errKind(st.Mode())
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, st, nil
}

// verify holds the real name of what was opened against p, so that a rename or
// a link between check and open gains nothing.
func (f *files) verify(p place, file *os.File) (fs.FileInfo, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if real, ok := f.realPath(file); ok {
		if real != p.path() {
			return nil, errMoved
		}
	} else if !straight(p) {
		return nil, errMoved
	}
	now, err := p.root.Lstat(p.rel)
	if err != nil || !os.SameFile(st, now) {
		return nil, errMoved
	}
	return st, nil
}

// realPath asks the kernel for the name of an open file; false where there is
// no /proc.
func (f *files) realPath(file *os.File) (real string, ok bool) {
	c, err := file.SyscallConn()
	if err != nil {
		return "", false
	}
	err = c.Control(func(fd uintptr) {
		to, err := os.Readlink(filepath.Join(f.proc, strconv.Itoa(int(fd))))
		real, ok = to, err == nil
	})
	return real, ok && err == nil
}

// straight reports whether no folder on the way to p is a link.
func straight(p place) bool {
	for dir := path.Dir(p.rel); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if st, err := p.root.Lstat(dir); err != nil || !st.IsDir() {
			return false
		}
	}
	return true
}

// escapes: os.Root has no exported error for a link that leads out.
func escapes(err error) bool { return strings.HasSuffix(err.Error(), "path escapes from parent") }

func errKind(m fs.FileMode) error {
	what := "no regular file"
	switch {
	case m&fs.ModeSymlink != 0:
		return errMoved // names have no links left
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m&fs.ModeDevice != 0:
		what = "a device"
	}
	return core.Errorf(core.Invalid, "it is %s, and only regular files are read or written", what)
}

// single refuses, below full trust, a file that has a second name somewhere:
// the bounds were asked for this one only.
func single(t *tool.Turn, st fs.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if t.Trust >= core.Full || st.IsDir() || ok && sys.Nlink <= 1 {
		return nil
	}
	return core.Errorf(core.Denied, "the file has a second name (a hard link), and at this trust only files with one name are open")
}

// explain turns what went wrong with a file into words for the model. shown is
// the path as the model wrote it: the resolved one may be none of its business.
func explain(shown string, err error) error {
	var known *core.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return &core.Error{Kind: known.Kind, Text: shown + ": " + known.Text, Err: known.Err}
	case errors.Is(err, errMoved):
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
