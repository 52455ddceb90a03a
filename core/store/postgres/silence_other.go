//go:build !linux

package postgres

import "syscall"

// limitSilence changes nothing: the system's own limits apply.
func limitSilence(_, _ string, _ syscall.RawConn) error { return nil }
