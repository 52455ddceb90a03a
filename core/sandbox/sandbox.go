// Package sandbox runs programs that see and change only what a Spec lists. It
// knows nothing of users, trust or tools.
//
// There are two layers. bubblewrap creates namespaces (user, mount, pid, net, ipc,
// uts and cgroup) in which only the listed directories exist; inside them our own
// program, executed as a stage (Main), drops all other rights of itself and its
// children with Landlock, seccomp and resource limits, and then executes the
// requested program.
package sandbox

import (
	"context"
	"os/exec"
	"time"

	"gatehouse/core/beneath"
)

// A Spec is what one program sees. Paths are absolute on the host, without links,
// and are the same inside. The program also sees the system's programs and
// libraries (/usr), a few files of /etc, its own /proc, a small /dev and an empty
// /tmp.
type Spec struct {
	// ReadOnly, Writable and Masked are files and directories of the host; the
	// longest path decides. A masked file cannot be opened, a masked directory is
	// empty and read-only but for what is given below it. At most MaxPaths in all.
	ReadOnly, Writable, Masked []string
	// IDs are the identities of these paths when the caller decided on them. If a
	// path is another file when it is mounted, the program is not started. A path
	// without an ID is used as it is when the Box opens it.
	IDs map[string]beneath.ID
	// Scratch is a directory of the host that is mounted at /tmp and that several
	// programs share; "" is a new /tmp that ends with the program.
	Scratch string
	Dir     string   // working directory; must be visible
	Env     []string // KEY=VALUE; nothing else is passed on
	Limits  Limits
	// OnLimit, if set, is called at most once, before OnGone, with the text of the
	// limit that ended the program. Any goroutine may call it.
	OnLimit func(why string)
	// OnGone, when set, hears once that no process of the program is left, or
	// that it never began, at the latest soon after ctx has ended. The end of
	// the Cmd alone does not say so of what ran in the background.
	OnGone func()
}

// MaxPaths bounds the paths of one Spec: each is a mount.
const MaxPaths = 4000

// Limits of one program with everything it starts; zero values mean the defaults.
// Where there are control groups (OpenGroups), the kernel holds memory and
// processes for all of it together, and to half of the machine's processors.
type Limits struct {
	Memory    int64         // bytes in use, all its processes together; 1 GiB
	Processes int           // with threads; 128
	FileSize  int64         // bytes of one file; 256 MiB
	Disk      int64         // bytes by which the disks of Writable and Scratch may fill during the run; 1 GiB
	CPU       time.Duration // of one process; 10 min
}

func (l Limits) orDefaults() Limits {
	if l.Memory <= 0 {
		l.Memory = 1 << 30
	}
	if l.Processes <= 0 {
		l.Processes = 128
	}
	if l.FileSize <= 0 {
		l.FileSize = 256 << 20
	}
	if l.Disk <= 0 {
		l.Disk = 1 << 30
	}
	if l.CPU <= 0 {
		l.CPU = 10 * time.Minute
	}
	return l
}

// A Box makes programs run isolated: own user, mount, pid, net and ipc
// namespaces, no network, no way to the host's processes. It is safe for
// concurrent use.
type Box interface {
	Name() string // Bubblewrap or Container
	// Command is argv ready to start inside. Its process group ends with ctx,
	// children included. The caller sets Stdin, Stdout and Stderr, starts it,
	// calls Release, waits, and ends ctx afterwards.
	Command(ctx context.Context, s Spec, argv ...string) (*exec.Cmd, error)
}

// Release closes what a command of Box or Tree was given open and has got by
// Start. It is called once after Start, whether that went well or not, or
// instead of it.
func Release(cmd *exec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
}

// Names of the settings of SANDBOX.
const (
	Auto       = "auto"       // the best that works here
	Bubblewrap = "bubblewrap" // that one or none
	Container  = "container"  // podman or docker (package container), or none
	None       = "none"       // no isolation wanted: what needs it is not offered
)

// A Backend is the state of one way of isolating on this machine.
type Backend struct {
	Name  string
	Works bool
	Text  string // what it is or why it does not work
	Fix   string // what to do about it; empty when nothing is to be done
}
