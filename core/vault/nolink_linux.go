package vault

import (
	"errors"

	"golang.org/x/sys/unix"
)

// stepFlags open a folder to go on from: no right to list it is needed.
const stepFlags = unix.O_PATH

// maxRaces bounds how often a lookup is tried again that a rename disturbed.
const maxRaces = 32

// openNoLinks opens name below the folder at by openat2, and step by step
// where the kernel or a filter in front of it lacks that call.
func openNoLinks(at int, name string) (int, error) {
	how := unix.OpenHow{
		Flags:   openFlags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for n := 0; ; n++ {
		fd, err := unix.Openat2(at, name, &how)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) && n < maxRaces:
			continue
		case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
			return openStepwise(at, name)
		}
		return fd, err
	}
}
