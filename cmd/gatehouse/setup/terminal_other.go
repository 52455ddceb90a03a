//go:build !linux

package setup

import (
	"errors"
	"os"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// hideInput returns errors.ErrUnsupported: only Linux terminals can hide what is typed,
// so a secret must come from a file.
func hideInput(*os.File) (show func(), err error) { return nil, errors.ErrUnsupported }
