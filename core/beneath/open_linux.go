package beneath

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// stepFlags open a parent directory: no right to list it is needed.
const stepFlags = unix.O_PATH

// maxRaces limits how often a lookup that a rename disturbed is retried.
const maxRaces = 32

// openNoLinks opens name below the directory at with openat2, or part by part
// where the kernel or a seccomp filter refuses that call.
func openNoLinks(at int, name string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for n := 0; ; n++ {
		fd, err := unix.Openat2(at, name, &how)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) && n < maxRaces:
			continue
		case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
			return openStepwise(at, name, flags)
		}
		return fd, err
	}
}

// chmodOpen sets the mode of the directory fd, opened with stepFlags, to 0700.
func chmodOpen(fd int) error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700) }

// swapNames swaps two names.
func swapNames(at int, a, b string) error {
	err := unix.Renameat2(at, a, at, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not supported by the file system
		return errors.ErrUnsupported
	}
	return err
}

// renameFree renames without replacing anything.
func renameFree(from int, name string, to int, as string) error {
	err := unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not supported by the file system
		return renameStepwise(from, name, to, as)
	}
	return err
}
