package core

import (
	"errors"
	"syscall"
)

// OutOfFiles reports whether err means that the process or the machine has no file
// descriptor left. It passes: what failed so has not been tried.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
