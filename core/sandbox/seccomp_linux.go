package sandbox

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the calls that no program in a sandbox needs and that reach the
// kernel's less trodden parts, its keys, or other namespaces. They fail with EPERM.
var refused = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE,
	unix.SYS_PROCESS_VM_READV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_MEMFD_SECRET, unix.SYS_CACHESTAT,
}

// families are the kinds of sockets that may be made: inside there is no network
// beyond its own loopback, but other kinds (vsock, packet, alg) know no namespaces.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// modes are the calls that set a file's mode, and which argument it is: a
// program made here must not run with the gateway's rights when somebody else on
// the host starts it, so the set-user-id and set-group-id bits are refused.
var modes = slices.Concat(legacyModes, []modeCall{
	{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2}, {unix.SYS_MKDIRAT, 2},
})

type modeCall struct{ number, argument uint32 }

// opens are the calls whose mode counts only with certain flags, else it is
// whatever stood in the register.
var opens = slices.Concat(legacyOpens, []openCall{{unix.SYS_OPENAT, 2, 3}})

type openCall struct{ number, flags, mode uint32 }

const makesFile = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// Offsets into struct seccomp_data; both architectures are little-endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg1   = 24
	argBytes   = 8
	x32Bit     = 0x40000000
)

const (
	namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	failEPERM      = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	failENOSYS     = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	failNOTSUP     = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	setID          = unix.S_ISUID | unix.S_ISGID
)

// filter refuses this thread, and what it becomes, the calls above. On
// architectures that it does not know it does nothing: it is the third wall.
func filter() error { return install(program) }

// install puts the filter that build makes for this machine's architecture on
// this thread and what it becomes.
func install(build func(arch uint32) []unix.SockFilter) error {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil
	}
	p := build(arch)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EINVAL {
		return errno
	}
	return nil
}

// Steps of a filter: load a word of seccomp_data, compare it, return.
func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func jump(how uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func result(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

func program(arch uint32) []unix.SockFilter {
	p := []unix.SockFilter{
		load(dataArch), jump(unix.BPF_JEQ, arch, 1, 0), result(unix.SECCOMP_RET_KILL_PROCESS), // another ABI, other numbers
		load(dataNumber), jump(unix.BPF_JGE, x32Bit, 0, 1), result(failENOSYS),
		// The C library tries these first, whose flags a filter cannot see, and falls back to clone and openat.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), result(failENOSYS),
		jump(unix.BPF_JEQ, unix.SYS_OPENAT2, 0, 1), result(failENOSYS),
		// Takes a whole disk in no time; the C library then writes instead.
		jump(unix.BPF_JEQ, unix.SYS_FALLOCATE, 0, 1), result(failNOTSUP),
	}
	for _, number := range refused {
		p = append(p, jump(unix.BPF_JEQ, number, 0, 1), result(failEPERM))
	}
	for _, m := range modes {
		p = append(p, jump(unix.BPF_JEQ, m.number, 0, 4), load(dataArg0+argBytes*m.argument),
			jump(unix.BPF_JSET, setID, 0, 1), result(failEPERM), result(unix.SECCOMP_RET_ALLOW))
	}
	for _, o := range opens {
		p = append(p, jump(unix.BPF_JEQ, o.number, 0, 6), load(dataArg0+argBytes*o.flags), jump(unix.BPF_JSET, makesFile, 0, 3),
			load(dataArg0+argBytes*o.mode), jump(unix.BPF_JSET, setID, 0, 1), result(failEPERM), result(unix.SECCOMP_RET_ALLOW))
	}
	p = append(p, jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4),
		load(dataArg0), jump(unix.BPF_JSET, namespaceFlags, 0, 1), result(failEPERM), result(unix.SECCOMP_RET_ALLOW))
	p = append(p, jump(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 5), load(dataArg1),
		jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1), result(failEPERM), result(unix.SECCOMP_RET_ALLOW))
	p = append(p, jump(unix.BPF_JEQ, unix.SYS_SOCKET, 1, 0), result(unix.SECCOMP_RET_ALLOW), load(dataArg0))
	for _, f := range families {
		p = append(p, jump(unix.BPF_JEQ, f, 0, 1), result(unix.SECCOMP_RET_ALLOW))
	}
	return append(p, result(failEPERM))
}
