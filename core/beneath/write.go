package beneath

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Create creates the file name, an entry of d itself, with mode 0600 for writing and
// reading. One that exists is fs.ErrExist, also a link.
func (d *Dir) Create(name string) (*os.File, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return nil, failed("create", name, fs.ErrInvalid)
	}
	fd := -1
	err := control(d.f, func(at int) error {
		for {
			var err error
			fd, err = unix.Openat(at, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
			if !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	})
	if err != nil {
		return nil, failed("create", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Exchange gives the entries a and b of d itself each other's names, in one step. Where
// the system cannot do that, the cause is errors.ErrUnsupported.
func (d *Dir) Exchange(a, b string) error {
	if err := control(d.f, func(at int) error { return swapNames(at, a, b) }); err != nil {
		return failed("exchange", a, err)
	}
	return nil
}

// Rename gives the entry name of d itself the name as. An existing file of that name is
// replaced, or, with free, is fs.ErrExist.
func (d *Dir) Rename(name, as string, free bool) error {
	err := control(d.f, func(at int) error {
		if free {
			return renameFree(at, name, at, as)
		}
		return unix.Renameat(at, name, at, as)
	})
	if err != nil {
		return failed("rename", name, err)
	}
	return nil
}

// Unlink deletes the file or link name, an entry of d itself; a missing one is no error.
func (d *Dir) Unlink(name string) error { return d.unlink(name, 0) }

// Sync has the entries of d on the disk.
func (d *Dir) Sync() error { return d.f.Sync() }
