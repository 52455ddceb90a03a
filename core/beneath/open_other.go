//go:build !linux

package beneath

import "golang.org/x/sys/unix"

// stepFlags open a folder to go on from.
const stepFlags = unix.O_RDONLY | unix.O_NONBLOCK

// openNoLinks opens name below the folder at without following a link.
func openNoLinks(at int, name string, flags int) (int, error) { return openStepwise(at, name, flags) }

// chmodOpen gives the folder fd its owner's rights.
func chmodOpen(fd int) error { return unix.Fchmod(fd, 0o700) }

// renameFree renames without replacing anything that is there before.
func renameFree(from int, name string, to int, as string) error {
	return renameStepwise(from, name, to, as)
}
