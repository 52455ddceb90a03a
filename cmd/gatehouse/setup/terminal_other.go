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

// hideInput is not implemented on this system: pass secrets in files.
func hideInput(*os.File) (show func(), err error) { return nil, errors.ErrUnsupported }
