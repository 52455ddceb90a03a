package place

import (
	"errors"
	"slices"
	"syscall"
)

// alone are errors of the system that are about one name: others may be written.
func alone() []syscall.Errno {
	return []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EILSEQ, syscall.ELOOP,
		syscall.EISDIR, syscall.ENOTDIR, syscall.EBUSY, syscall.ETXTBSY, syscall.EROFS, syscall.EFBIG}
}

// Alone reports whether err is about one file, such as one in a directory that may not be
// written, and returns it without names of the host. A full or broken disk is none.
func Alone(err error) (why error, ok bool) {
	var n syscall.Errno
	if errors.As(err, &n) && slices.Contains(alone(), n) {
		return n, true
	}
	return nil, false
}
