package sandbox

import "golang.org/x/sys/unix"

// Calls that newer architectures do not have.
var (
	legacyModes = []modeCall{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}, {unix.SYS_MKDIR, 1}}
	legacyOpens = []openCall{{unix.SYS_OPEN, 1, 2}}
)
