package vault

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// errLinked is the cause when a name goes through a symbolic link.
var errLinked = errors.New("the path goes through a symbolic link")

// errSpecial is the cause when a name is neither a regular file nor a folder.
var errSpecial = errors.New("it is neither a regular file nor a folder")

// OpenNoLinks opens the existing regular file or folder name for reading. No
// part of name may be a symbolic link, also when another process swaps parts
// of it during the call: the kernel resolves the name below the descriptor of
// the vault. It never blocks on a pipe. Errors are *fs.PathError and hold the
// name as given, never a path of the host.
func (v *Vault) OpenNoLinks(name string) (*os.File, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	dir, err := v.root.Open(".")
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	defer dir.Close()
	return openBelow(dir, name)
}

// openBelow opens name below the open folder dir, as OpenNoLinks does.
func openBelow(dir *os.File, name string) (*os.File, error) {
	conn, err := dir.SyscallConn()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	fd := -1
	if e := conn.Control(func(at uintptr) { fd, err = openNoLinks(int(at), name) }); e != nil {
		err = e
	}
	if err == nil {
		err = plain(fd)
	}
	if err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: linked(err)}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// plain returns an error unless fd is a regular file or a folder.
func plain(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return errSpecial
	}
	return nil
}

// cause is what failed, without the names that a path error holds.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// linked gives the errors of a refused link one form on every system.
func linked(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) {
		return errLinked
	}
	return err
}

const openFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY

// openStepwise opens name below the folder at, one part after the other, each
// without following a link. It needs no openat2.
func openStepwise(at int, name string) (int, error) {
	dir := -1
	for parent := range parents(name) {
		below := at
		if dir >= 0 {
			below = dir
		}
		next, err := openat(below, parent, stepFlags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		if dir >= 0 {
			_ = unix.Close(dir)
		}
		if errors.Is(err, unix.ENOTDIR) && isLink(below, parent) {
			err = unix.ELOOP
		}
		if err != nil {
			return -1, err
		}
		dir = next
	}
	if dir < 0 {
		return openat(at, name, openFlags|unix.O_NOFOLLOW)
	}
	defer unix.Close(dir)
	return openat(dir, path.Base(name), openFlags|unix.O_NOFOLLOW)
}

// parents yields the names of the folders above the last part of name.
func parents(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			part, rest, more := strings.Cut(name, "/")
			if !more || !yield(part) {
				return
			}
			name = rest
		}
	}
}

// isLink reports whether name is a symbolic link; it only words an error.
func isLink(at int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// openat is unix.Openat, retried when a signal interrupts it.
func openat(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
