//go:build !linux

package secrets

// closeProcess does nothing: it needs Linux.
func closeProcess() error { return nil }

// wipeEnviron does nothing: it needs Linux.
func wipeEnviron([]string) error { return nil }
