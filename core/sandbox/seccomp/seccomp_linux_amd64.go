package seccomp

import "golang.org/x/sys/unix"

// refusedHere are calls to refuse that only this architecture has.
var refusedHere = []uint32{unix.SYS_MODIFY_LDT, unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS}

// Calls that newer architectures do not have.
var (
	legacyModes = []modeCall{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}, {unix.SYS_MKDIR, 1}}
	legacyOpens = []openCall{{unix.SYS_OPEN, 1, 2}}
)
