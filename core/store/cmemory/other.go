//go:build !linux || !cgo

package cmemory

// Trim does nothing where the C library returns freed memory.
func Trim() {}
