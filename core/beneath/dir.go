package beneath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrChanged is the cause when a name refers to another file than the caller
// decided on.
var ErrChanged = errors.New("the name refers to another file now")

// Replaced reports whether err means that a name refers to something else, such
// as a link or a pipe, than when its directory was read.
func Replaced(err error) bool {
	return errors.Is(err, ErrLink) || errors.Is(err, ErrSpecial) || errors.Is(err, ErrChanged) || errors.Is(err, unix.ENOTDIR)
}

// An ID identifies a file to the kernel, under any name.
type ID struct{ Dev, Ino uint64 }

// An Info describes a file. Of a symbolic link it describes the link.
type Info struct {
	ID
	Mode    fs.FileMode
	Size    int64
	Time    time.Time
	Changed time.Time // of the content or the description: no program sets it back
}

// A Dir is an open directory. It stays the same directory when it is renamed. It
// is safe for concurrent use, except for Names. The caller closes it.
type Dir struct{ f *os.File }

// OpenDir opens a directory by its path on the host. It follows links: the caller
// must trust the path.
func OpenDir(path string) (*Dir, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// Of returns the directory that root gives access to.
func Of(root *os.Root) (*Dir, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.f.Close() }

// Open opens name below d, as the function Open does.
func (d *Dir) Open(name string) (*os.File, error) { return Open(d.f, name) }

// Dir opens the directory name below d.
func (d *Dir) Dir(name string) (*Dir, error) {
	f, err := d.handle(name, openFlags|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// Handle opens the file or directory name below d with O_PATH, only to refer to it
// by its descriptor. No right to read it is needed.
func (d *Dir) Handle(name string) (*os.File, error) {
	return d.handle(name, stepFlags|unix.O_CLOEXEC)
}

func (d *Dir) handle(name string, flags int) (*os.File, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return nil, failed("open", name, fs.ErrInvalid)
	}
	fd := -1
	err := control(d.f, func(at int) (err error) {
		fd, err = openNoLinks(at, name, flags)
		return err
	})
	if err != nil {
		return nil, failed("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Self returns the description of the directory itself.
func (d *Dir) Self() (Info, error) { return describe(d.f) }

// Stat returns the description of name. It follows no link, not even a last one.
func (d *Dir) Stat(name string) (Info, error) {
	if base := path.Base(name); base != name {
		up, err := d.Dir(path.Dir(name))
		if err != nil {
			return Info{}, err
		}
		defer up.Close()
		info, err := up.Stat(base)
		return info, renamed(err, name)
	}
	if name == "" || name == ".." || strings.ContainsAny(name, "/\x00") { // an entry may have a name that is not UTF-8
		return Info{}, failed("stat", name, fs.ErrInvalid)
	}
	var st unix.Stat_t
	err := control(d.f, func(at int) error { return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Info{}, failed("stat", name, err)
	}
	return infoOf(&st), nil
}

// renamed returns err with the name that the caller used.
func renamed(err error, name string) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: name, Err: p.Err}
	}
	return err
}

func describe(f *os.File) (Info, error) {
	var st unix.Stat_t
	if err := control(f, func(fd int) error { return unix.Fstat(fd, &st) }); err != nil {
		return Info{}, failed("stat", f.Name(), err)
	}
	return infoOf(&st), nil
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFREG:
	default:
		mode |= fs.ModeIrregular
	}
	return Info{
		ID:   ID{uint64(st.Dev), st.Ino}, //nolint:unconvert // its type differs by system
		Mode: mode, Size: st.Size, Time: time.Unix(st.Mtim.Unix()), Changed: time.Unix(st.Ctim.Unix()),
	}
}

// Names returns the next names of the directory, at most n, in no order. At the
// end it returns none and no error.
func (d *Dir) Names(n int) ([]string, error) {
	names, err := d.f.Readdirnames(n)
	if len(names) > 0 || err == nil || errors.Is(err, io.EOF) {
		return names, nil
	}
	return nil, failed("list", d.f.Name(), err)
}

// Readlink returns the target of the link name, an entry of d itself.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, 4096) // PATH_MAX
	n := 0
	err := control(d.f, func(at int) (err error) {
		n, err = unix.Readlinkat(at, name, buf)
		return err
	})
	if errors.Is(err, unix.EINVAL) {
		err = ErrChanged // it is no link
	}
	if err != nil {
		return "", failed("readlink", name, err)
	}
	return string(buf[:n]), nil
}

// Symlink creates the link name, an entry of d itself, to target.
func (d *Dir) Symlink(target, name string) error {
	if err := control(d.f, func(at int) error { return unix.Symlinkat(target, at, name) }); err != nil {
		return failed("symlink", name, err)
	}
	return nil
}

// Mkdir creates the directory name, an entry of d itself, with mode 0700.
func (d *Dir) Mkdir(name string) error {
	if err := control(d.f, func(at int) error { return unix.Mkdirat(at, name, 0o700) }); err != nil {
		return failed("mkdir", name, err)
	}
	return nil
}

// Unlock sets the mode of the directory name, an entry of d itself, to 0700. It is
// for directories from which the owner's rights were removed.
func (d *Dir) Unlock(name string) error {
	f, err := d.handle(name, stepFlags|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := control(f, chmodOpen); err != nil {
		return failed("chmod", name, err)
	}
	return nil
}

// Move renames name, an entry of d with the identity want, to the free name as in
// the directory to. If name is another file by then, nothing is moved, or what was
// moved is moved back, and the cause of the error is ErrChanged. If to is on
// another file system, the cause is unix.EXDEV.
func (d *Dir) Move(name string, want ID, to *Dir, as string) error {
	now, err := d.Stat(name)
	if err == nil && now.ID != want {
		err = ErrChanged
	}
	if err == nil {
		err = renameBetween(d, name, to, as)
	}
	if errors.Is(err, unix.EXDEV) { // not a link, as where names are resolved
		return &fs.PathError{Op: "move", Path: name, Err: err}
	}
	if err != nil {
		return failed("move", name, err)
	}
	if moved, err := to.Stat(as); err == nil && moved.ID == want {
		return nil
	}
	return failed("move", name, errors.Join(ErrChanged, renameBetween(to, as, d, name)))
}

func renameBetween(from *Dir, name string, to *Dir, as string) error {
	return control(from.f, func(a int) error {
		return control(to.f, func(b int) error { return renameFree(a, name, b, as) })
	})
}

// MkdirAll opens the directory name below d and creates what is missing of it.
func (d *Dir) MkdirAll(name string) (*Dir, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return nil, failed("mkdir", name, fs.ErrInvalid)
	}
	at, err := d.Dir(".")
	for part := range strings.SplitSeq(name, "/") {
		if err != nil {
			return nil, err
		}
		var next *Dir
		if err = at.Mkdir(part); err == nil || errors.Is(err, fs.ErrExist) {
			next, err = at.Dir(part)
		}
		_ = at.Close()
		at = next
	}
	return at, renamed(err, name)
}
