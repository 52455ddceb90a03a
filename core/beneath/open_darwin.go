package beneath

import (
	"errors"

	"golang.org/x/sys/unix"
)

// swapNames swaps two names.
func swapNames(at int, a, b string) error {
	err := unix.RenameatxNp(at, a, at, b, unix.RENAME_SWAP)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) { // not supported by the file system
		return errors.ErrUnsupported
	}
	return err
}

// renameFree renames without replacing anything.
func renameFree(from int, name string, to int, as string) error {
	err := unix.RenameatxNp(from, name, to, as, unix.RENAME_EXCL)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) { // not supported by the file system
		return renameStepwise(from, name, to, as)
	}
	return err
}
