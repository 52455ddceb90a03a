//go:build !linux

package doctor

// Filesystem knows nothing about file systems outside of Linux.
func Filesystem(string) (worry string, free uint64, ok bool) { return "", 0, false }
