package seccomp

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the calls that no program in a sandbox needs and that reach the
// kernel's less trodden parts, its keys, or other namespaces. They fail with EPERM.
var refused = slices.Concat(refusedHere, []uint32{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE,
	unix.SYS_PROCESS_VM_READV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_MEMFD_SECRET, unix.SYS_CACHESTAT,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FANOTIFY_MARK, unix.SYS_QUOTACTL_FD, unix.SYS_FILE_SETATTR,
	unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_NFSSERVCTL, unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_VMSPLICE, unix.SYS_REMAP_FILE_PAGES,
	// Memory of other processes, and where memory is.
	unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_SET_MEMPOLICY_HOME_NODE,
	// Memory that belongs to no process, so that it is not counted.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_SEMGET,
})

// absent are calls that fail with ENOSYS, as on an older kernel, because the C
// library and others then do without: files in memory, which no limit of a
// process counts, and lists of mounts.
var absent = []uint32{unix.SYS_MEMFD_CREATE, unix.SYS_LISTMOUNT, unix.SYS_STATMOUNT, unix.SYS_LISTNS}

// Personalities that may be asked for: Linux's own, and which one it is.
var personalities = []uint32{0, 0xffffffff}

// terminals are the ioctls that write into a terminal or change what drives it.
var terminals = []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD}

// families are the kinds of sockets that may be made: inside there is no network
// beyond its own loopback, but other kinds (vsock, packet, alg) know no namespaces.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// modes are the calls that set a file's mode, with the index of the argument: a
// file written here must not run with the gateway's rights when another user of
// the host executes it, so the set-user-id and set-group-id bits are refused.
var modes = slices.Concat(legacyModes, []modeCall{
	{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2}, {unix.SYS_MKDIRAT, 2},
})

type modeCall struct{ number, argument uint32 }

// opens are the calls with a mode that counts only with certain flags; else the
// register has any value.
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

// A Filter is ready to be installed on a thread.
type Filter struct{ steps []unix.SockFilter }

// Isolated returns the filter of a program in a Box.
func Isolated() Filter { return newFilter(program) }

// Veiled returns the filter of a program behind a Veil.
func Veiled() Filter { return newFilter(veilProgram) }

// newFilter returns the filter that build makes for this machine's architecture.
// On an unknown architecture it refuses nothing: the filter is the third layer.
func newFilter(build func(arch uint32) []unix.SockFilter) Filter {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return Filter{}
	}
	return Filter{build(arch)}
}

// Install installs the filter on this thread; it stays across an exec.
func (f Filter) Install() error {
	if f.steps == nil {
		return nil
	}
	prog := unix.SockFprog{Len: uint16(len(f.steps)), Filter: &f.steps[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(f)
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EINVAL {
		return errno
	}
	return nil
}

// Steps of a filter: load a field of seccomp_data, compare it, return.
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
		// A filter cannot see the flags of these. The C library falls back to clone and
		// openat.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), result(failENOSYS),
		jump(unix.BPF_JEQ, unix.SYS_OPENAT2, 0, 1), result(failENOSYS),
		// Takes a whole disk in no time; the C library then writes instead.
		jump(unix.BPF_JEQ, unix.SYS_FALLOCATE, 0, 1), result(failNOTSUP),
	}
	for _, number := range refused {
		p = append(p, jump(unix.BPF_JEQ, number, 0, 1), result(failEPERM))
	}
	for _, number := range absent {
		p = append(p, jump(unix.BPF_JEQ, number, 0, 1), result(failENOSYS))
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
	p = append(p, only(unix.SYS_PERSONALITY, dataArg0, personalities)...)
	p = append(p, except(unix.SYS_IOCTL, dataArg1, terminals)...)
	p = append(p, only(unix.SYS_SOCKET, dataArg0, families)...)
	p = append(p, only(unix.SYS_SOCKETPAIR, dataArg0, families)...)
	return append(p, result(unix.SECCOMP_RET_ALLOW))
}

// only refuses a call unless its argument at is one of values.
func only(number, at uint32, values []uint32) []unix.SockFilter {
	return decide(number, at, values, unix.SECCOMP_RET_ALLOW, failEPERM)
}

// except refuses a call if its argument at is one of values.
func except(number, at uint32, values []uint32) []unix.SockFilter {
	return decide(number, at, values, failEPERM, unix.SECCOMP_RET_ALLOW)
}

// decide returns the steps that return listed for a call with one of values in the
// argument at, else other. Calls of other numbers continue behind them.
func decide(number, at uint32, values []uint32, listed, other uint32) []unix.SockFilter {
	p := []unix.SockFilter{load(at)}
	for _, v := range values {
		p = append(p, jump(unix.BPF_JEQ, v, 0, 1), result(listed))
	}
	p = append(p, result(other))
	return append([]unix.SockFilter{jump(unix.BPF_JEQ, number, 0, uint8(len(p)))}, p...)
}
