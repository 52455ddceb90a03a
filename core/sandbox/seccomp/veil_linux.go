package seccomp

import "golang.org/x/sys/unix"

// veilRefused are the calls that could undo a veil if a capability or a bug of
// the kernel allowed them: everything that mounts, enters a namespace, opens a
// file by handle, or changes the kernel. They fail with EPERM.
var veilRefused = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_BPF,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
}

// An abi is one set of numbers of system calls.
type abi struct {
	arch          uint32
	refused       []uint32
	clone3, clone uint32
	unshare       uint32
	beyond        uint32 // numbers from here on, where it is not 0, belong to another ABI
}

// veilABIs returns the ABIs that programs of this machine may use at full trust:
// its own, and on amd64 that of 32-bit programs.
func veilABIs(arch uint32) []abi {
	own := abi{arch: arch, refused: veilRefused, clone3: unix.SYS_CLONE3, clone: unix.SYS_CLONE, unshare: unix.SYS_UNSHARE}
	if arch != unix.AUDIT_ARCH_X86_64 {
		return []abi{own}
	}
	own.beyond = x32Bit
	return []abi{own, {arch: unix.AUDIT_ARCH_I386, refused: refused386, clone3: 435, clone: 120, unshare: 310}}
}

// refused386 are the calls of veilRefused, and umount, by their numbers on i386.
var refused386 = []uint32{
	21, 22, 52, 217, 346, // mount, umount, umount2, pivot_root, setns
	428, 429, 430, 431, 432, 433, 442, 467, // open_tree … fspick, mount_setattr, open_tree_attr
	342, 338, 357, // open_by_handle_at, fanotify_init, bpf
	128, 350, 129, 283, 88, // init_module, finit_module, delete_module, kexec_load, reboot
	87, 115, 51, // swapon, swapoff, acct
}

// veilProgram returns the filter behind a veil. It allows new user namespaces
// (browsers isolate their pages with them) and refuses new mount namespaces.
func veilProgram(arch uint32) []unix.SockFilter {
	var p []unix.SockFilter
	for _, a := range veilABIs(arch) {
		part := abiProgram(a)
		// Jumps reach 255 steps, a part is shorter than that.
		p = append(p, load(dataArch), jump(unix.BPF_JEQ, a.arch, 0, uint8(len(part))))
		p = append(p, part...)
	}
	return append(p, result(unix.SECCOMP_RET_KILL_PROCESS)) // another ABI, other numbers
}

// abiProgram ends in a result for every call of one ABI.
func abiProgram(a abi) []unix.SockFilter {
	p := []unix.SockFilter{load(dataNumber)}
	if a.beyond != 0 {
		p = append(p, jump(unix.BPF_JGE, a.beyond, 0, 1), result(failENOSYS))
	}
	// The C library falls back to clone; a filter can see its flags.
	p = append(p, jump(unix.BPF_JEQ, a.clone3, 0, 1), result(failENOSYS))
	for _, number := range a.refused {
		p = append(p, jump(unix.BPF_JEQ, number, 0, 1), result(failEPERM))
	}
	return append(p,
		jump(unix.BPF_JEQ, a.clone, 1, 0), jump(unix.BPF_JEQ, a.unshare, 0, 2),
		load(dataArg0), jump(unix.BPF_JSET, unix.CLONE_NEWNS, 1, 0), result(unix.SECCOMP_RET_ALLOW), result(failEPERM))
}
