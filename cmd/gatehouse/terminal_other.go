//go:build !linux

package main

import (
	"errors"
	"os"
)

// isTerminal reports whether somebody may sit before f.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// hideInput is not known for this system: give secrets by files.
func hideInput(*os.File) (show func(), err error) { return nil, errors.ErrUnsupported }
