package beneath

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// stepFlags open a folder to go on from: no right to list it is needed.
const stepFlags = unix.O_PATH

// maxRaces bounds how often a lookup is tried again that a rename disturbed.
const maxRaces = 32

// openNoLinks opens name below the folder at by openat2, and step by step
// where the kernel or a filter in front of it lacks that call.
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

// chmodOpen gives the folder fd, opened by stepFlags, its owner's rights.
func chmodOpen(fd int) error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700) }

// renameFree renames without replacing anything.
func renameFree(from int, name string, to int, as string) error {
	err := unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot
		return renameStepwise(from, name, to, as)
	}
	return err
}
