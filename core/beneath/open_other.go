//go:build !linux

package beneath

import "golang.org/x/sys/unix"

// stepFlags open a parent directory.
const stepFlags = unix.O_RDONLY | unix.O_NONBLOCK

// openNoLinks opens name below the directory at without following a link.
func openNoLinks(at int, name string, flags int) (int, error) { return openStepwise(at, name, flags) }

// chmodOpen sets the mode of the directory fd to 0700.
func chmodOpen(fd int) error { return unix.Fchmod(fd, 0o700) }
