// Package beneath opens, lists, moves and removes files below an open directory.
// The kernel resolves names below the directory's descriptor, and no part of a
// name may be a symbolic link: another process that replaces a name by a link, at
// any time, gains nothing. What is moved is compared with the device and inode
// that the caller decided on.
package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLink is the cause when a name goes through a symbolic link, or leads out.
var ErrLink = errors.New("the path goes through a symbolic link")

// ErrSpecial is the cause when a name is neither a regular file nor a directory.
var ErrSpecial = errors.New("it is neither a regular file nor a folder")

// Open opens the existing regular file or directory name below the open directory
// dir for reading. No part of name may be a symbolic link, also when another
// process swaps parts of it during the call: the kernel resolves the name below
// the descriptor of dir. It never blocks on a pipe. name is a slash path as
// fs.ValidPath wants it. Errors are *fs.PathError and hold name as given, never
// a path of the host.
func Open(dir *os.File, name string) (*os.File, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return nil, failed("open", name, fs.ErrInvalid)
	}
	fd := -1
	err := control(dir, func(at int) (err error) {
		fd, err = openNoLinks(at, name, openFlags)
		return err
	})
	if err == nil {
		err = plain(fd)
	}
	if err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return nil, failed("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// control calls f with the descriptor of file, which stays open during the call.
func control(file *os.File, f func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	if err := conn.Control(func(fd uintptr) { failure = f(int(fd)) }); err != nil {
		return err
	}
	return failure
}

// failed returns a *fs.PathError that names no path of the host.
func failed(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: linked(cause(err))}
}

// plain returns an error unless fd is a regular file or a directory.
func plain(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return ErrSpecial
	}
	return nil
}

// cause returns the cause of a path error, without its names.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// linked returns ErrLink for the errors of a refused link on every system.
func linked(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) {
		return ErrLink
	}
	return err
}

const openFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY

// openStepwise opens name below the directory at part by part, without following a
// link. It needs no openat2.
func openStepwise(at int, name string, flags int) (int, error) {
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
		return openat(at, name, flags|unix.O_NOFOLLOW)
	}
	defer unix.Close(dir)
	return openat(dir, path.Base(name), flags|unix.O_NOFOLLOW)
}

// parents yields the names of the directories above the last part of name.
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

// isLink reports whether name is a symbolic link, to choose an error.
func isLink(at int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// openat calls unix.Openat, and repeats it when a signal interrupts it.
func openat(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// renameStepwise checks that the name as is free and then renames, for systems
// that cannot do both in one step.
func renameStepwise(from int, name string, to int, as string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(to, as, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		return errors.Join(err, fs.ErrExist)
	}
	return unix.Renameat(from, name, to, as)
}
